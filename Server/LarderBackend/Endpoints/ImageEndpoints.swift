import LarderEngine
import LarderHTTP

/// Images by width. Bytes are sent from the file in chunks, so that a large image is never entirely in memory.
enum ImageEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/images/{id}", .ignored, read)
    ]

    private static func read(_ call: inout Call) throws(Problem) -> Reply? {
        guard let image = call.world.images[call.parameters[0]] else {
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

        var fields = Fields()
        fields.add(.contentType, rendition.mediaType)
        fields.add(.cacheControl, CachePolicy.image.description)
        fields.add(.vary, "Origin")
        return try call.contentReply(fields, entityTag: rendition.entityTag, byteCount: rendition.byteCount) {
            () throws(Problem) in
            do {
                return .file(try FileRegion(opening: rendition.path, byteCount: rendition.byteCount))
            } catch {
                throw ProblemType.notFound("The file of this rendition cannot be read: \(error).")
            }
        }
    }
}
