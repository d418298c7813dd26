import LarderHTTP
import LarderResources
import LarderTransport

/// Sends the file of a write in pieces, and goes on where the server has it (draft-ietf-httpbis-resumable-upload).
///
/// | what was interrupted | how it goes on |
/// | --- | --- |
/// | the beginning | under the same idempotency key, which returns the same upload |
/// | a piece, or another attempt was further (409) | the next attempt asks with `HEAD` how much the server has |
/// | the reply to the last piece | an empty last piece returns it; a server that refuses that has carried the write out |
/// | the server has forgotten the upload (404, 410) | it begins anew, under another key |
struct UploadSender: Sendable {
    let source: HTTPSource
    let files: UploadFiles
    /// Told how much the server has.
    let onProgress: @Sendable (Int64) -> Void

    /// - Parameters:
    ///   - request: the request of the write, without content.
    ///   - file: the file, which is in `files`.
    /// - Returns: the reply to the last piece.
    func send(_ request: TransportRequest, _ file: StoredWrite.File) async throws(LarderError) -> TransportResponse {
        let place = try await files.place(file.name)
        guard let url = place.url else {
            let (url, offset) = try await begin(request, file, place.losses)
            try await files.setPlace(file.name, UploadFiles.Place(url: url, losses: place.losses))
            return try await send(file, from: offset, to: url)
        }
        let head = TransportRequest(method: .head, url: url, fields: source.configuration.fields)
        let known = try await checked(try await source.send(head), url, file)
        guard let offset = Self.offset(known), offset <= file.length else {
            throw LarderError(
                .unexpectedReply,
                "The server states no offset within the file for the upload \(url). Drop the operation, and write it again.",
                status: Int(known.status.code)
            )
        }
        guard known.fields[.uploadComplete] == "?1" else { return try await send(file, from: offset, to: url) }
        let reply = try await source.send(piece([], at: file.length, isLast: true, url))
        return [.badRequest, .conflict].contains(reply.status) ? known : try await checked(reply, url, file)
    }

    private func send(
        _ file: StoredWrite.File,
        from start: Int64,
        to url: String
    ) async throws(LarderError) -> TransportResponse {
        var offset = start
        while true {
            onProgress(offset)
            let bytes = offset < file.length ? try await files.bytes(file.name, from: offset) : []
            let end = offset + Int64(bytes.count)
            let reply = try await source.send(piece(bytes, at: offset, isLast: end == file.length, url))
            let response = try await checked(reply, url, file)
            guard end < file.length else {
                onProgress(end)
                return response
            }
            let next = Self.offset(response) ?? end
            guard next > offset, next <= file.length else {
                throw Self.interrupted("The server did not take the piece at \(offset) of \(url).")
            }
            offset = next
        }
    }

    private func piece(_ bytes: [UInt8], at offset: Int64, isLast: Bool, _ url: String) -> TransportRequest {
        var piece = TransportRequest(method: .patch, url: url, fields: source.configuration.fields, body: bytes)
        piece.fields.set(.contentType, "application/partial-upload")
        piece.fields.set(.uploadOffset, "\(offset)")
        piece.fields.set(.uploadComplete, isLast ? "?1" : "?0")
        return piece
    }

    /// A reply about an upload that was begun, if it is a success.
    ///
    /// - Throws: `.offline` for what the next attempt continues; otherwise the error of the reply.
    private func checked(
        _ response: TransportResponse,
        _ url: String,
        _ file: StoredWrite.File
    ) async throws(LarderError) -> TransportResponse {
        // A captive portal may reply with any status.
        guard !HTTPSource.isForeign(response) else { throw source.error(for: response, url) }
        if (200..<300).contains(response.status.code) { return response }
        if response.status == .notFound || response.status == .gone {
            let losses = try await files.place(file.name).losses
            try await files.setPlace(file.name, UploadFiles.Place(url: nil, losses: losses + 1))
            throw Self.interrupted("The server has forgotten the upload \(url); it begins anew.")
        }
        if response.status == .conflict, Self.offset(response) != nil {
            throw Self.interrupted("Another attempt was further with the upload \(url); it goes on there.")
        }
        throw source.error(for: response, url)
    }

    private static func interrupted(_ text: String) -> LarderError { LarderError(TransportError(.interrupted, text)) }

    /// Begins an upload; returns its URL, and how much the server has of it.
    private func begin(
        _ request: TransportRequest,
        _ file: StoredWrite.File,
        _ losses: Int
    ) async throws(LarderError) -> (url: String, offset: Int64) {
        var request = request
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
        return (url.text, Self.offset(response) ?? 0)
    }

    private static func offset(_ response: TransportResponse) -> Int64? {
        response.fields[.uploadOffset].flatMap { Int64($0) }
    }
}
