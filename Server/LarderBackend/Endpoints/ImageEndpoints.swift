import LarderEngine
import LarderHTTP

/// Images by width. Bytes are sent from the file in chunks, so that a large image is never entirely in memory.
enum ImageEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/images/{id}", .ignored, read)
    ]

    private static func read(_ call: inout Call) throws(Problem) -> Answer {
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
        fields.add(.etag, rendition.entityTag.description)
        fields.add(.acceptRanges, "bytes")
        fields.add(.vary, "Origin")
        let outcome = Preconditions(call.request).evaluate(
            method: call.request.method,
            exists: true,
            entityTag: rendition.entityTag,
            lastModified: nil,
            now: call.world.clock.now
        )
        switch outcome {
        case .proceed: break
        case .notModified: return .reply(.response(Response(status: .notModified, fields: fields, body: .empty)))
        case .preconditionFailed:
            throw ProblemType.preconditionFailed(
                "The image has another ETag.",
                fields: [.etag: rendition.entityTag.description]
            )
        }

        let file: FileRegion
        do {
            file = try FileRegion(opening: rendition.path, byteCount: rendition.byteCount)
        } catch {
            throw ProblemType.notFound("The file of this rendition cannot be read: \(error).")
        }
        guard let range = requestedRange(call, rendition) else {
            return .reply(.response(Response(status: .ok, fields: fields, body: .file(file))))
        }
        switch range {
        case .satisfiable(let bytes):
            fields.add(.contentRange, "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(rendition.byteCount)")
            return .reply(
                .response(Response(status: .partialContent, fields: fields, body: .file(file.extracting(bytes))))
            )
        case .unsatisfiable:
            throw ProblemType.rangeNotSatisfiable(
                "The range contains none of the image's \(rendition.byteCount) bytes.",
                fields: [.contentRange: "bytes */\(rendition.byteCount)", .acceptRanges: "bytes"]
            )
        }
    }

    private enum Range {
        case satisfiable(Swift.Range<Int>)
        case unsatisfiable
    }

    /// The requested range, if there is exactly one. Several ranges, or a failed `If-Range`, are answered with the whole image,
    /// as RFC 9110 §14.2 allows.
    private static func requestedRange(_ call: Call, _ rendition: ImageCatalogue.Rendition) -> Range? {
        guard call.request.method == .get, let field = call.request.fields[.range],
            let ranges = ByteRange.parse(field), ranges.count == 1
        else { return nil }
        if let condition = call.request.fields[.ifRange],
            !Preconditions.ifRangeHolds(
                condition,
                entityTag: rendition.entityTag,
                lastModified: nil,
                date: call.world.clock.now
            )
        {
            return nil
        }
        guard let range = ranges[0].resolved(against: rendition.byteCount) else { return .unsatisfiable }
        return .satisfiable(range)
    }
}
