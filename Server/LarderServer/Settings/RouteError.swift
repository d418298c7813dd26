/// A file of routes, an OpenAPI description or a script of faults that cannot be used: one sentence with
/// the file, the line and the member.
package struct RouteError: Error, Sendable, CustomStringConvertible {
    package let description: String
}
