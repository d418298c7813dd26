/// A fixture file that cannot be used.
package struct FixtureError: Error, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
