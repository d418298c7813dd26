/// The `Age` field (RFC 9111 §5.1).
public enum Age {
    /// How old a response was when it was sent, in seconds; 0 where it does not say, or nothing that can be understood.
    ///
    /// Of several values the first counts.
    public static func seconds(in fields: Fields) -> Int64 {
        guard let value = fields[.age], let first = FieldList.split(value, at: UInt8(ascii: ",")).first else {
            return 0
        }
        return DeltaSeconds.parse(first) ?? 0
    }
}
