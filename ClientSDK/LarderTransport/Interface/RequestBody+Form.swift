extension RequestBody {
    /// A form with files and values, sent as `multipart/form-data` (RFC 7578).
    ///
    ///     var form = RequestBody.Form()
    ///     form.add("caption", "At the lake")
    ///     form.add("photo", RequestBody(file: path, contentType: "image/jpeg"), filename: "lake.jpg")
    ///     try await source.send(.post, "/v1/photos", upload: form.body)
    ///
    /// The parts are read one after another while they are sent. The length is known if that of each part is. The form can be sent again
    /// if each part can.
    public struct Form: Sendable {
        /// The text between the parts: 128 random bits, so that no part has it.
        public let boundary: String
        private var parts: [Part] = []

        /// An empty form with a random boundary.
        public init() {
            var random = SystemRandomNumberGenerator()
            self.init(random: &random)
        }

        /// An empty form.
        ///
        /// - Parameter random: the source of the boundary.
        public init(random: inout some RandomNumberGenerator) {
            let digits = (0..<2).map { _ in
                let part = String(random.next() as UInt64, radix: 16)
                return String(repeating: "0", count: 16 - part.count) + part
            }
            boundary = "larder-" + digits.joined()
        }

        /// Adds a value as UTF-8 text.
        public mutating func add(_ name: String, _ value: String) { add(name, RequestBody(Array(value.utf8))) }

        /// Adds a part.
        ///
        /// - Parameters:
        ///   - name: the name of the field. Quotes and line breaks are percent-encoded, as browsers do.
        ///   - body: the content. Its `contentType` becomes that of the part.
        ///   - filename: the name of the file, for a part that is one. Its type is `application/octet-stream` if `body` states none.
        public mutating func add(_ name: String, _ body: RequestBody, filename: String? = nil) {
            var head = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escaped(name))\""
            if let filename { head += "; filename=\"\(Self.escaped(filename))\"" }
            head += "\r\n"
            if let type = body.contentType ?? filename.map({ _ in "application/octet-stream" }) {
                head += "Content-Type: \(Self.oneLine(type))\r\n"
            }
            parts.append(Part(head: Array((head + "\r\n").utf8), body: body))
        }

        /// The form as the body of a request, with its `Content-Type`. Later changes of the form do not change it.
        public var body: RequestBody {
            RequestBody(
                RequestForm(parts: parts, end: Array("--\(boundary)--\r\n".utf8)),
                "multipart/form-data; boundary=\(boundary)"
            )
        }

        /// Escapes the characters that would end a quoted name (RFC 7578 §4.2; the form submission of HTML does the same).
        private static func escaped(_ name: String) -> String {
            var text = ""
            for scalar in name.unicodeScalars {
                switch scalar {
                case "\"": text += "%22"
                case "\r": text += "%0D"
                case "\n": text += "%0A"
                case "\0": text += "%00"
                default: text.unicodeScalars.append(scalar)
                }
            }
            return text
        }

        private static func oneLine(_ type: String) -> String {
            String(String.UnicodeScalarView(type.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }))
        }
    }
}

extension RequestBody.Form {
    fileprivate struct Part: Sendable {
        /// The delimiter and the fields.
        let head: [UInt8]
        let body: RequestBody
    }
}

private struct RequestForm: RequestContent {
    let parts: [RequestBody.Form.Part]
    let end: [UInt8]

    var isReplayable: Bool { parts.allSatisfy(\.body.isReplayable) }

    func length() async throws -> Int? {
        var total = end.count
        for part in parts {
            guard let length = try await part.body.length() else { return nil }
            // A line break follows each part.
            let (sum, overflows) = total.addingReportingOverflow(part.head.count + 2)
            let (next, overflowsAgain) = sum.addingReportingOverflow(length)
            guard !overflows, !overflowsAgain else {
                throw TransportError(.invalidRequest, "The stated lengths of the form's parts are too large.")
            }
            total = next
        }
        return total
    }

    func write(to sink: ([UInt8]) async throws -> Void) async throws {
        for part in parts {
            try await sink(part.head)
            let length = try await part.body.length()
            var failure: (any Error)?
            let isWhole = try await part.body.write(length) { piece, _ in
                do {
                    try await sink(piece)
                    return true
                } catch {
                    failure = error
                    return false
                }
            }
            if let failure { throw failure }
            guard isWhole else { throw CancellationError() }
            try await sink([13, 10])
        }
        try await sink(end)
    }
}
