import Foundation

/// Makes unique keys.
package enum RandomKey {
    /// A random UUID (RFC 9562 §5.4) in lower case.
    package static func make() -> String { UUID().uuidString.lowercased() }
}
