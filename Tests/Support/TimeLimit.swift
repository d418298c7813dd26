import Foundation
package import Testing

extension Trait where Self == TimeLimitTrait {
    /// One minute for each test, times `LARDER_TEST_TIME_FACTOR` of the environment (a whole number, for slow machines).
    ///
    /// Without that variable the factor is 1 if the number of concurrent tests is limited, and 10 if not, because all tests then start
    /// at once and their time limits include waiting for a processor.
    package static var oneMinute: Self {
        let environment = ProcessInfo.processInfo.environment
        let isLimited = environment["SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH"] != nil
        let factor = environment["LARDER_TEST_TIME_FACTOR"].flatMap { Int($0) } ?? (isLimited ? 1 : 10)
        return .timeLimit(.minutes(max(1, factor)))
    }
}
