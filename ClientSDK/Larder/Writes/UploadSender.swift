import LarderHTTP
import LarderResources
import LarderTransport

/// Sends the file of a write in pieces, and goes on where the server has it (draft-ietf-httpbis-resumable-upload).
///
/// | what was interrupted | how it goes on |
/// | --- | --- |
/// | the beginning | under the same idempotency key, which returns the same upload |
/// | a piece | `HEAD` says how much the server has |
/// | the reply to the last piece | an empty last piece returns it |
/// | the server has forgotten the upload (404, 410) | it begins anew |
struct UploadSender: Sendable {
    private static let type = "application/partial-upload"

    let source: HTTPSource
    let files: UploadFiles
    /// Told how much the server has.
    let onProgress: @Sendable (Int64) -> Void

    /// - Parameters:
    ///   - request: the request of the write, without content.
    ///   - file: the file, which is in `files`.
    /// - Returns: the reply to the last piece.
    func send(_ request: TransportRequest, _ file: StoredWrite.File) async throws(LarderError) -> TransportResponse {
        // Its place could not be stored either: it would be begun again and again.
        guard files.contains(file.name) else { throw Self.missing(file) }
        var (known, offset, isComplete) = try await present(file)
        if known == nil {
            (known, offset, isComplete) = try await begin(request, file)
            try files.setPlace(file.name, UploadFiles.Place(url: known, losses: files.place(file.name).losses))
        }
        guard let place = known else { throw Self.missing(file) }
        while true {
            onProgress(offset)
            var bytes: [UInt8] = []
            if !isComplete, offset < file.length {
                guard let rest = files.bytes(file.name, from: offset) else { throw Self.missing(file) }
                bytes = rest
            }
            let isLast = offset + Int64(bytes.count) == file.length
            var piece = TransportRequest(method: .patch, url: place, fields: source.configuration.fields, body: bytes)
            piece.fields.set(.contentType, Self.type)
            piece.fields.set(.uploadOffset, "\(offset)")
            piece.fields.set(.uploadComplete, isLast ? "?1" : "?0")
            let response = try await source.send(piece)
            if (200..<300).contains(response.status.code) {
                guard !isLast else {
                    onProgress(file.length)
                    return response
                }
                offset = Self.offset(response) ?? offset + Int64(bytes.count)
            } else if response.status == .conflict, let known = Self.offset(response), known != offset,
                known <= file.length
            {
                // Another attempt was further.
                (offset, isComplete) = (known, Self.isComplete(response))
            } else {
                if source.configuration.isGone(response, source.isAccepted(response)) {
                    try forget(file)
                    throw LarderError(
                        TransportError(.interrupted, "The server has forgotten the upload \(place); it begins anew.")
                    )
                }
                throw source.error(for: response, place)
            }
        }
    }

    /// What the server has of an upload that was begun; without a place if it was not, or if the server has forgotten it.
    private func present(_ file: StoredWrite.File) async throws(LarderError) -> (String?, Int64, Bool) {
        guard let place = files.place(file.name).url else { return (nil, 0, false) }
        let request = TransportRequest(method: .head, url: place, fields: source.configuration.fields)
        let response = try await source.send(request)
        if let offset = Self.offset(response), (200..<300).contains(response.status.code), offset <= file.length {
            return (place, offset, Self.isComplete(response))
        }
        // A reply to HEAD has no content, by which one of a proxy could be told.
        guard response.status == .notFound || response.status == .gone else { throw source.error(for: response, place) }
        try forget(file)
        return (nil, 0, false)
    }

    /// The server does not know the upload any more.
    private func forget(_ file: StoredWrite.File) throws(LarderError) {
        try files.setPlace(file.name, UploadFiles.Place(url: nil, losses: files.place(file.name).losses + 1))
    }

    /// Begins an upload; returns its URL, and what the server has of it.
    private func begin(
        _ request: TransportRequest,
        _ file: StoredWrite.File
    ) async throws(LarderError) -> (String?, Int64, Bool) {
        var request = request
        let losses = files.place(file.name).losses
        if losses > 0, let key = request.fields[.idempotencyKey] {
            // The reply to the first beginning would lead to what the server has forgotten.
            request.fields.set(.idempotencyKey, "\(key)-\(losses)")
        }
        request.fields.set(.contentType, file.contentType)
        request.fields.set(.uploadComplete, "?0")
        request.fields.set(.uploadLength, "\(file.length)")
        let response = try await source.send(request)
        guard (200..<300).contains(response.status.code), !HTTPSource.isForeign(response) else {
            throw source.error(for: response, request.url)
        }
        guard let location = response.fields[.location], let base = HTTPURL(response.redirectedTo ?? request.url),
            let url = base.resolve(location), url.origin == base.origin
        else {
            throw LarderError(
                .unexpectedReply,
                "\(request.url) has begun no upload: the reply has no Location of this server for the pieces. It must take uploads in pieces "
                    + "(draft-ietf-httpbis-resumable-upload).",
                status: Int(response.status.code)
            )
        }
        return (url.text, Self.offset(response) ?? 0, Self.isComplete(response))
    }

    private static func offset(_ response: TransportResponse) -> Int64? {
        response.fields[.uploadOffset].flatMap { Int64($0) }
    }

    private static func isComplete(_ response: TransportResponse) -> Bool {
        response.fields[.uploadComplete] == "?1"
    }

    private static func missing(_ file: StoredWrite.File) -> LarderError {
        LarderError(
            .invalidArgument,
            "The copy of the file is missing or has another length than \(file.length) bytes. Drop the operation, and write it again."
        )
    }
}
