import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

/// Photos that are uploaded in pieces and resumed (draft-ietf-httpbis-resumable-upload; tus 1.0 for a request with `Tus-Resumable`). A complete
/// photo is an image, which posts and messages can have. The URL of a tus upload ends with the identifier of its image.
enum UploadEndpoints {
    static let routes: [Route] = [
        Route(.post, "/v1/photos", .required) { call throws(Problem) in try checked(call, begin) },
        Route(.get, "/v1/uploads/{id}", .required) { call throws(Problem) in try checked(call, offset) },
        Route(.patch, "/v1/uploads/{id}", .required) { call throws(Problem) in try checked(call, append) },
        Route(.delete, "/v1/uploads/{id}", .required) { call throws(Problem) in try checked(call, cancel) },
    ]

    static let bytesMaximum: Int64 = 16 << 20
    static let pieceMaximum: Int64 = 1 << 20
    static let incompleteMaximum: Int64 = 16
    /// The most bytes of all uploads of a user.
    static let keptBytesMaximum: Int64 = 256 << 20
    private static let limits = "max-size=\(bytesMaximum), max-append-size=\(pieceMaximum)"

    // MARK: tus 1.0

    /// What the reply to `OPTIONS` of a path says of tus: nothing if the path is not one of uploads.
    static func tusFields(_ path: String) -> Fields {
        guard path == "/v1/photos" || path.hasPrefix("/v1/uploads/") else { return [:] }
        return [
            .tusResumable: "1.0.0", "Tus-Version": "1.0.0", "Tus-Extension": "creation",
            "Tus-Max-Size": "\(bytesMaximum)",
        ]
    }

    /// Processes a request of no version of tus or of a known one. An error states the version too.
    private static func checked(
        _ call: Call,
        _ answer: (Call) throws(Problem) -> Reply?
    ) throws(Problem) -> Reply? {
        guard let version = call.request.fields.combined(.tusResumable) else { return try answer(call) }
        guard version == "1.0.0" else {
            throw ProblemType.preconditionFailed(
                "The version '\(version.prefix(32))' of tus is not supported; 1.0.0 is.",
                fields: [.tusResumable: "1.0.0", "Tus-Version": "1.0.0"]
            )
        }
        do { return try answer(call) } catch {
            var problem = error
            problem.fields.set(.tusResumable, "1.0.0")
            throw problem
        }
    }

    /// The fields of a request that is a part of an upload.
    private struct Part {
        let isTus: Bool
        /// Whether the content ends with this request, by the draft.
        private let isStatedLast: Bool
        var offset: Int64?
        let length: Int64?

        init(_ call: Call) throws(Problem) {
            func integer(_ name: FieldName) throws(Problem) -> Int64? {
                guard let text = call.request.fields.combined(name) else { return nil }
                guard let value = Int64(text), value >= 0 else {
                    throw UploadEndpoints.invalid(name, "must be an integer of at least 0")
                }
                return value
            }
            isTus = UploadEndpoints.isTus(call)
            switch call.request.fields.combined(.uploadComplete) {
            case nil, "?1"?: isStatedLast = true
            case "?0"?: isStatedLast = false
            default: throw UploadEndpoints.invalid(.uploadComplete, "must be ?0 or ?1")
            }
            offset = try integer(.uploadOffset)
            length = try integer(.uploadLength)
            if let length, length > bytesMaximum { throw UploadEndpoints.tooLarge(length) }
        }

        /// Whether the content ends with this request, after which so much of so much is here.
        func isLast(_ size: Int64, of length: Int64?) -> Bool { isTus ? size == length : isStatedLast }
    }

    private static func isTus(_ call: Call) -> Bool { call.request.fields.combined(.tusResumable) != nil }

    /// The media type of the whole: with tus the metadata `filetype`.
    private static func mediaType(_ call: Call) -> String {
        let fields = call.request.fields
        guard isTus(call) else {
            return fields.combined(.contentType).flatMap { MediaType(parsing: $0) }?.essence ?? ""
        }
        let pairs = (fields.combined(.uploadMetadata) ?? "").split(separator: ",").map { $0.split(separator: " ") }
        let value = pairs.first { $0.count == 2 && $0[0] == "filetype" }.map { String($0[1]) }
        return value.flatMap { Base64.decode($0) }.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    // MARK: Requests

    private static func begin(_ call: Call) throws(Problem) -> Reply? {
        var part = try Part(call)
        // The first part has none.
        part.offset = nil
        let mediaType = mediaType(call)
        guard ["image/png", "image/jpeg"].contains(mediaType) else {
            throw ProblemType.unsupportedMediaType(
                "The content is '\(mediaType.prefix(64))'. Send image/png or image/jpeg.",
                fields: [.accept: "image/png, image/jpeg"]
            )
        }
        if part.isTus, part.length == nil { throw invalid(.uploadLength, "is missing") }
        let (owner, body) = (call.viewer, call.request.body)
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            try store.uploads.removeExpired(commit.now)
            let (incomplete, kept) = try store.uploads.sums(of: owner, at: commit.now)
            guard kept <= keptBytesMaximum else {
                throw ProblemType.contentTooLarge(
                    "Your photos have \(kept) bytes; at most \(keptBytesMaximum) are kept."
                )
            }
            guard incomplete < incompleteMaximum else {
                throw ProblemType.rateLimited(
                    "\(incompleteMaximum) uploads are not complete. Complete one, or remove it.",
                    fields: [.retryAfter: "60"]
                )
            }
            let row = try store.uploads.add(
                owner: owner,
                mediaType: mediaType,
                length: part.length,
                at: commit.now
            )
            guard let upload = try store.uploads.find(row) else { throw missing("\(row)") }
            return try take(body, part, for: upload, in: store)
        }
    }

    private static func offset(_ call: Call) throws(Problem) -> Reply? {
        let upload = try call.read { store in try own(call, in: store) }
        return Reply(status: .noContent, fields: fields(of: upload, isTus: isTus(call)), body: .empty)
    }

    private static func append(_ call: Call) throws(Problem) -> Reply? {
        let type = call.request.fields.combined(.contentType) ?? ""
        let part = try Part(call)
        let wanted = part.isTus ? "application/offset+octet-stream" : "application/partial-upload"
        guard MediaType(parsing: type)?.essence == wanted else {
            throw ProblemType.unsupportedMediaType(
                "The content is '\(type.prefix(64))'. A piece is \(wanted).",
                fields: [.accept: wanted]
            )
        }
        guard let start = part.offset else { throw invalid(.uploadOffset, "is missing") }
        guard part.isTus || call.request.fields.combined(.uploadComplete) != nil else {
            throw invalid(.uploadComplete, "is missing")
        }
        let body = call.request.body
        let reply = try call.write { store, _ -> Reply? in
            let upload = try own(call, in: store)
            if let image = upload.image, part.isLast(upload.size, of: upload.length), start == upload.size, body.isEmpty
            {
                // The reply to the last piece was lost.
                return completed(image, upload, part)
            }
            guard upload.image == nil, start == upload.size else {
                throw ProblemType.uploadOffset(
                    "The upload has \(upload.size) bytes, and the piece begins at \(start).",
                    fields: fields(of: upload)
                )
            }
            if let length = upload.length, upload.size + Int64(body.count) > length {
                // What it has is of no use any more.
                try store.uploads.delete(upload.row)
                return nil
            }
            return try take(body, part, for: upload, in: store)
        }
        // Thrown after the commit.
        guard let reply else { throw tooLarge(start + Int64(body.count)) }
        return reply
    }

    private static func cancel(_ call: Call) throws(Problem) -> Reply? {
        try call.write { store, _ in
            let upload = try own(call, in: store)
            guard upload.image == nil else {
                throw ProblemType.uploadOffset("The upload is complete.", fields: fields(of: upload))
            }
            try store.uploads.delete(upload.row)
        }
        return isTus(call) ? Reply(status: .noContent, fields: [.tusResumable: "1.0.0"], body: .empty) : .noContent
    }

    // MARK: Parts

    /// Adds a piece; with the last one the upload becomes an image.
    private static func take(_ body: [UInt8], _ part: Part, for upload: UploadRow, in store: Store) throws -> Reply {
        let size = upload.size + Int64(body.count)
        guard size <= min(bytesMaximum, upload.length ?? bytesMaximum) else { throw tooLarge(size) }
        try store.uploads.append(body, to: upload)
        guard part.isLast(size, of: upload.length) else {
            var fields = fields(of: upload, size: size, isTus: part.isTus)
            guard upload.size == 0, part.offset == nil else {
                return Reply(status: .noContent, fields: fields, body: .empty)
            }
            fields.set(.location, "/v1/uploads/\(part.isTus ? identifier(upload.row) : "\(upload.row)")")
            return Reply(status: .created, fields: fields, body: .empty)
        }
        if let length = upload.length ?? part.length, length != size {
            throw invalid(.uploadLength, "is \(length), and the content has \(size) bytes")
        }
        let content = try store.uploads.content(upload.row)
        guard let picture = PictureSize(of: content), picture.mediaType == upload.mediaType else {
            throw ProblemType.validationFailed(
                "The content is not a picture of the type \(upload.mediaType).",
                at: "",
                "has another format or a damaged head"
            )
        }
        let image = json(picture, upload.row, content).encoded
        try store.uploads.complete(upload.row, as: image, EntityTag.strong(contentOf: content.span))
        return completed(image, upload, part)
    }

    private static func completed(_ image: [UInt8], _ upload: UploadRow, _ part: Part) -> Reply {
        if part.isTus {
            let fields = fields(of: upload, size: upload.length, isTus: true)
            return Reply(status: .noContent, fields: fields, body: .empty)
        }
        var reply = Reply.written(image, createdAt: "/v1/images/\(identifier(upload.row))")
        reply.head.append("Upload-Complete", "?1")
        return reply
    }

    private static func own(_ call: Call, in store: Store) throws -> UploadRow {
        let text = call.parameters[0]
        guard let row = Int64(text.hasPrefix(imagePrefix) ? text.dropFirst(imagePrefix.count) : text[...]),
            let upload = try store.uploads.find(row), upload.owner == call.viewer,
            upload.image != nil || upload.created > call.world.clock.now - UploadTable.lifetime
        else { throw missing(text) }
        return upload
    }

    private static func fields(of upload: UploadRow, size: Int64? = nil, isTus: Bool = false) -> Fields {
        var fields: Fields = [.uploadOffset: "\(size ?? upload.size)", .cacheControl: "no-store"]
        if isTus {
            fields.set(.tusResumable, "1.0.0")
        } else {
            fields.set(.uploadComplete, upload.image == nil ? "?0" : "?1")
            fields.set(.uploadLimit, limits)
        }
        if let length = upload.length { fields.set(.uploadLength, "\(length)") }
        return fields
    }

    // MARK: Images

    /// The identifier of the image that an upload has become. Its content never changes.
    private static func identifier(_ row: Int64) -> String { "\(imagePrefix)\(row)" }

    private static let imagePrefix = "img_upload_"

    /// The completed upload with an identifier of an image; nil for images of the catalogue.
    static func upload(_ identifier: String, in store: Store) throws(SQLiteError) -> UploadRow? {
        guard identifier.hasPrefix(imagePrefix), let row = Int64(identifier.dropFirst(imagePrefix.count)) else {
            return nil
        }
        return try store.uploads.find(row).flatMap { $0.image == nil ? nil : $0 }
    }

    private static func json(_ picture: PictureSize, _ row: Int64, _ content: [UInt8]) -> JSONValue {
        .members([
            "id": .string(identifier(row)), "url": .string("/v1/images/\(identifier(row))"),
            "width": .integer(Int64(picture.width)), "height": .integer(Int64(picture.height)), "alt": .string(""),
            "placeholder": .string(""), "widths": .array([.integer(Int64(picture.width))]),
        ])
    }

    // MARK: Errors

    private static func missing(_ text: String) -> Problem {
        ProblemType.notFound("You have no upload '\(text.prefix(32))'. It was removed, or never begun.")
    }

    private static func tooLarge(_ count: Int64) -> Problem {
        ProblemType.contentTooLarge(
            "The photo has at least \(count) bytes; at most \(bytesMaximum) are accepted.",
            fields: [.uploadLimit: limits]
        )
    }

    private static func invalid(_ name: FieldName, _ detail: String) -> Problem {
        ProblemType.invalidParameter("The field \(name) \(detail).", at: name.description, detail)
    }
}
