import LarderCoding
import LarderEngine
import LarderHTTP

/// Images by width, and photos that were uploaded.
enum ImageEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/images/{id}", .ignored, read)
    ]

    private static func read(_ call: Call) throws(Problem) -> Reply? {
        guard let image = call.world.images[call.parameters[0]] else {
            if let reply = try uploaded(call) { return reply }
            throw ProblemType.notFound("There is no image \(call.parameters[0]).")
        }
        let width = try call.integer("width", in: 1...16_384)
        let format = call.query.first("format")
        guard format == nil || format == "png" || format == "jpeg" else {
            throw call.invalid("format", "must be `png` or `jpeg`")
        }
        guard let rendition = image.rendition(width: width, format: format) else {
            throw ProblemType.notFound("There is no such rendition of \(image.id).")
        }
        if let accept = call.request.fields.combined(.accept), !Accept(parsing: accept).accepts(rendition.mediaType) {
            throw ProblemType.notAcceptable("The image is \(rendition.mediaType).")
        }

        if let reply = unchanged(call, rendition.mediaType, rendition.entityTag) { return reply }
        let content: [UInt8]
        do { content = try SourceFile.bytes(rendition.path) } catch {
            throw ProblemType.notFound("The file of this rendition cannot be read: \(error).")
        }
        guard content.count == rendition.byteCount else {
            throw ProblemType.notFound("The file of this rendition has changed since the start.")
        }
        return reply(call, content, rendition.mediaType, rendition.entityTag)
    }

    /// The 304 for a client that has the image; nil if it needs the content.
    private static func unchanged(_ call: Call, _ mediaType: String, _ tag: EntityTag) -> Reply? {
        let reply = reply(call, [], mediaType, tag)
        return reply.status == .notModified ? reply : nil
    }

    private static func reply(_ call: Call, _ content: [UInt8], _ mediaType: String, _ tag: EntityTag) -> Reply {
        Representation(
            content,
            [.contentType: mediaType, .cacheControl: CachePolicy.image, .vary: "Origin"],
            tag,
            isText: false
        ).reply(to: call.request, now: call.world.clock.now)
    }

    /// A photo that was uploaded, as it was sent; nil if there is none.
    private static func uploaded(_ call: Call) throws(Problem) -> Reply? {
        let id = call.parameters[0]
        return try call.read { store in
            guard let upload = try UploadEndpoints.upload(id, in: store) else { return nil }
            if let tag = upload.tag, let reply = unchanged(call, upload.mediaType, tag) { return reply }
            let content = try store.uploads.content(upload.row)
            return reply(call, content, upload.mediaType, upload.tag ?? .strong(contentOf: content.span))
        }
    }

    /// Reads `{"image":{"id":"img_…"}}`, or null: an image of the catalogue or an uploaded one, as it is in posts and messages.
    static func reference(_ reader: BodyReader, _ call: Call) throws(Problem) -> JSONValue? {
        guard let value = reader.value("image") else { return nil }
        guard case .object(let object) = value, case .string(let id)? = object["id"] else {
            reader.fail("image", "must be null or an object with the `id` of an image")
            return nil
        }
        if let image = call.world.images[id] { return image.json }
        let uploaded = try call.read { store in
            try UploadEndpoints.upload(id, in: store)?.image.map { try JSONParser.parse($0) }
        }
        if uploaded == nil { reader.errors.add("/image/id", "is not the identifier of an image") }
        return uploaded
    }
}
