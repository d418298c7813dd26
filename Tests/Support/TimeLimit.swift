import Foundation
package import Testing

extension Trait where Self == TimeLimitTrait {
    /// One minute for each test, times `LARDER_TEST_TIME_FACTOR` of the environment (a whole number, for slow machines).
    package static var oneMinute: Self {
        let factor = ProcessInfo.processInfo.environment["LARDER_TEST_TIME_FACTOR"].flatMap { Int($0) } ?? 1
        return .timeLimit(.minutes(max(1, factor)))
    }
}
