/// The arguments of a command line that belong to a flag.
package enum FlagParser {
    /// A flag with its value: `--port=80`.
    package static func split(_ flag: String) -> (name: String, value: String?) {
        guard flag.hasPrefix("--"), let equals = flag.firstIndex(of: "=") else { return (flag, nil) }
        return (String(flag[..<equals]), String(flag[flag.index(after: equals)...]))
    }

    /// The value of a flag: the part after `=`, or the next argument.
    package static func value(
        _ name: String,
        _ inline: String?,
        _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> String {
        guard let value = inline ?? rest.popFirst(), !value.isEmpty else {
            throw UsageError(message: "\(name) requires a value")
        }
        return value
    }

    /// The numeric value of a flag.
    package static func number(
        _ name: String,
        _ inline: String?,
        _ rest: inout ArraySlice<String>,
        _ range: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        let text = try value(name, inline, &rest)
        guard let number = Int(text), range.contains(number) else {
            throw UsageError(
                message: "\(name) requires an integer from \(range.lowerBound) to \(range.upperBound), not '\(text)'"
            )
        }
        return number
    }
}
