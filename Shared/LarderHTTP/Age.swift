/// The `Age` field (RFC 9111 §5.1).
package enum Age {
    /// Returns the age in seconds; 0 if the field is missing or invalid.
    ///
    /// The first of several values is used.
    package static func seconds(in fields: Fields) -> Int64 {
        guard let value = fields[.age], let first = FieldList.split(value, at: UInt8(ascii: ",")).first else {
            return 0
        }
        return DeltaSeconds.parse(first) ?? 0
    }
}
