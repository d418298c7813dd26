/// The text of a statement: a literal, or a literal with other such texts in it. Values are bound and never part of it.
package struct SQLText: ExpressibleByStringInterpolation, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(stringLiteral literal: String) { description = literal }

    package init(stringInterpolation parts: StringInterpolation) { description = parts.text }

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

        package mutating func appendLiteral(_ literal: String) { text += literal }

        package mutating func appendInterpolation(_ part: SQLText) { text += part.description }
    }
}
