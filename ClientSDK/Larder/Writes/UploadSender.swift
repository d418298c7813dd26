import LarderHTTP
import LarderResources
import LarderTransport

/// Sends the file of a write in pieces, and goes on where the server has it (`HTTPSource.UploadProtocol`).
///
/// | what was interrupted | how it goes on |
/// | --- | --- |
/// | the beginning | under the same idempotency key, which returns the same upload |
/// | a piece, or another attempt was further (409) | the next attempt asks with `HEAD` how much the server has |
/// | the reply to the last piece | an empty last piece returns it (with tus: the server has the whole file); if the server has it no more, the write is rejected, and a person decides |
/// | the same, and the API is at another origin since | the write is rejected, and a person decides |
/// | the server has forgotten the upload (404, 410) before its last piece | it begins anew, under another key |
///
/// A reply with `Upload-Complete: ?1` is the reply of the write, whatever its status; with tus the success that has taken the last byte.
struct UploadSender: Sendable {
    let source: HTTPSource
    let files: UploadFiles
    let write: StoredWrite
    let file: StoredWrite.File
    /// The idempotency key of the write.
    let key: String
    private var uploads: HTTPSource.UploadProtocol { source.configuration.uploads }
    /// Told how much the server has.
    let onProgress: @Sendable (Int64) -> Void

    /// - Returns: the reply of the write, with any status.
    /// - Throws: `.offline` for what the next attempt continues; `.invalidArgument` if the server does not do what the protocol says.
    func send() async throws(LarderError) -> TransportResponse {
        var place = try await files.place(file.name)
        if place.key != key || !(place.url.map { source.isOwn($0) } ?? true) {
            // The present server need not know what became of it at the one before.
            if place.key == key, place.isEnding { throw LarderError(.invalidArgument, Self.undecided) }
            place = UploadFiles.Place(key: key)
        }
        var known: TransportResponse?
        if place.url == nil {
            let begun = try await source.send(beginning(place))
            guard Self.isSuccess(begun) else { return begun }
            place.url = try location(of: begun)
            try await files.setPlace(file.name, place)
            // Only the reply to `HEAD` must state an offset, which no other resource than an upload does.
            if begun.fields[.uploadOffset] != nil { known = begun }
        }
        let url = place.url ?? ""
        let state = if let known { known } else { try await source.send(request(.head, url, uploads.fields)) }
        guard Self.isSuccess(state) else { throw try await failure(state, place, isComplete: false) }
        guard var offset = try offset(of: state) else {
            throw unsupported("The reply to HEAD has no Upload-Offset.", state)
        }
        if uploads == .tus, offset == file.length { return ended(state, url) }
        let isComplete = state.fields[.uploadComplete] == "?1"
        if isComplete { offset = file.length }
        let size = pieceBytes(state)
        while true {
            onProgress(offset)
            let bytes = offset < file.length ? try await files.bytes(file.name, from: offset, count: size) : []
            let end = offset + Int64(bytes.count)
            let isLast = end == file.length
            let isFirstLast = isLast && !place.isEnding
            if isFirstLast {
                place.isEnding = true
                try await files.setPlace(file.name, place)
            }
            let reply: TransportResponse
            do { reply = try await source.send(piece(bytes, at: offset, isLast: isLast, url)) } catch {
                if Outbox.Verdict(error) == .unsent, isFirstLast { try await retract(&place, isComplete) }
                throw error
            }
            if reply.status == .unauthorized, isFirstLast { try await retract(&place, isComplete) }
            // With an offset, a conflict is one with the state of the upload.
            let isOfUpload = reply.status == .conflict && reply.fields[.uploadOffset] != nil
            if reply.fields[.uploadComplete] == "?1", !isOfUpload { return reply }
            guard Self.isSuccess(reply) else { throw try await failure(reply, place, isComplete: isComplete) }
            let next = try self.offset(of: reply) ?? end
            if uploads == .tus, next == file.length { return ended(reply, url) }
            guard next > offset else {
                // A server that has everything, and does not process it, never will.
                throw bytes.isEmpty
                    ? unsupported("The server has the whole file, and does not complete the upload.", reply)
                    : Self.interrupted("The server did not take the piece at \(offset) of \(url).")
            }
            offset = next
        }
    }

    /// Notes that the last piece was not sent, or was turned away. Of an earlier attempt nobody knows whether it was sent.
    private func retract(_ place: inout UploadFiles.Place, _ isComplete: Bool) async throws(LarderError) {
        guard !isComplete else { return }
        place.isEnding = false
        try await files.setPlace(file.name, place)
    }

    /// After it, what was begun is another upload.
    func forget() async throws(LarderError) {
        let place = try await files.place(file.name)
        guard place.url != nil else { return }
        try await files.setPlace(file.name, UploadFiles.Place(key: key, losses: place.losses + 1))
    }

    /// The error for a reply about the upload that is no success.
    private func failure(
        _ reply: TransportResponse,
        _ place: UploadFiles.Place,
        isComplete: Bool
    ) async throws(LarderError) -> LarderError {
        let url = place.url ?? ""
        let error = source.error(for: reply, url)
        // A proxy knows nothing of uploads.
        guard error.code != .unexpectedReply else { return error }
        let isForgotten = reply.status == .notFound || reply.status == .gone
        if isForgotten && place.isEnding || isComplete && [.badRequest, .conflict].contains(reply.status) {
            return LarderError(.rejected, Self.undecided, status: Int(reply.status.code))
        }
        if isForgotten {
            try await forget()
            return Self.interrupted("The server has forgotten the upload \(url); it begins anew.")
        }
        if reply.status == .conflict, reply.fields[.uploadOffset] != nil {
            return Self.interrupted("Another attempt was further with the upload \(url); it goes on there.")
        }
        return error
    }

    private static let undecided =
        "The server may have got the whole file, and does not say what has become of it. See whether the change was made; then send it "
        + "again (Outbox.retry), or drop it."

    private static func interrupted(_ text: String) -> LarderError { LarderError(TransportError(.interrupted, text)) }

    private func unsupported(_ text: String, _ reply: TransportResponse) -> LarderError {
        LarderError(
            .invalidArgument,
            "\(write.path) takes no file in pieces as HTTPSource.Configuration.uploads (\(uploads)) says. \(text)",
            status: Int(reply.status.code)
        )
    }

    // MARK: Requests

    private func beginning(_ place: UploadFiles.Place) -> TransportRequest {
        // The reply to the first beginning would lead to what the server has forgotten.
        var request = write.request(to: source, key: place.losses > 0 ? "\(key)-\(place.losses)" : key)
        let fields = uploads.beginning(length: file.length, contentType: file.contentType)
        for field in fields { request.fields.set(field.name, field.value) }
        return request
    }

    private func request(
        _ method: LarderHTTP.Method,
        _ url: String,
        _ fields: Fields,
        _ bytes: [UInt8] = []
    ) -> TransportRequest {
        var request = TransportRequest(
            method: method,
            url: url,
            fields: source.configuration.fields,
            body: bytes,
            bodyLimit: source.configuration.replyBytesMaximum
        )
        for field in fields { request.fields.set(field.name, field.value) }
        return request
    }

    private func piece(_ bytes: [UInt8], at offset: Int64, isLast: Bool, _ url: String) -> TransportRequest {
        request(.patch, url, uploads.piece(at: offset, isLast: isLast), bytes)
    }

    // MARK: Replies

    /// A captive portal may reply with any status.
    private static func isSuccess(_ reply: TransportResponse) -> Bool {
        (200..<300).contains(reply.status.code) && !HTTPSource.isForeign(reply)
    }

    /// The reply of the write with tus: what has been created is the upload, unless the server names something else.
    private func ended(_ reply: TransportResponse, _ url: String) -> TransportResponse {
        var reply = reply
        reply.status = .created
        if reply.fields[.location] == nil { reply.fields.set(.location, url) }
        return reply
    }

    private func location(of begun: TransportResponse) throws(LarderError) -> String {
        let asked = TransportRequest(url: source.url(write.path)).url
        guard let location = begun.fields[.location], let base = HTTPURL(begun.redirectedTo ?? asked),
            let url = base.resolve(location), source.isOwn(url.text)
        else { throw unsupported("The reply has no Location at \(source.base) for the pieces.", begun) }
        return url.text
    }

    /// Nil if there is none.
    ///
    /// - Throws: `.invalidArgument` if it is none within the file.
    private func offset(of reply: TransportResponse) throws(LarderError) -> Int64? {
        guard let text = reply.fields[.uploadOffset] else { return nil }
        guard let offset = Int64(text), (0...file.length).contains(offset) else {
            throw unsupported("The Upload-Offset '\(text)' is not within the \(file.length) bytes of the file.", reply)
        }
        return offset
    }

    /// The size of the pieces: that of the stored ones, or the nearest that the server takes (`Upload-Limit`).
    private func pieceBytes(_ reply: TransportResponse) -> Int {
        var limits: [Substring: Int] = [:]
        for member in (reply.fields.combined(.uploadLimit) ?? "").filter({ $0 != " " }).split(separator: ",") {
            let parts = member.split(whereSeparator: { $0 == "=" || $0 == ";" })
            if parts.count > 1, let value = Int(parts[1]), value > 0 { limits[parts[0]] = value }
        }
        let wanted = max(UploadFiles.pieceBytes, limits["min-append-size"] ?? 0)
        // A piece is in memory as a whole.
        return min(wanted, limits["max-append-size"] ?? .max, 16 << 20)
    }
}
