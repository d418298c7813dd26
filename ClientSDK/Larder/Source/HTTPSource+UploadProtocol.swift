import LarderCoding
import LarderHTTP

extension HTTPSource {
    /// How a server takes a file in pieces (`APIClient.upload`).
    public enum UploadProtocol: Sendable, Hashable {
        /// draft-ietf-httpbis-resumable-upload. The reply with `Upload-Complete: ?1` is the reply of the write.
        case ietf
        /// tus 1.0 with the extension `creation`; the media type of the file is the metadata `filetype`. The upload ends, and the write is
        /// carried out, when the server has the last byte; the reply to that piece is the reply of the write. If it has no `Location`, the
        /// created entity is the upload itself, with the end of its URL as its ID.
        case tus
    }
}

extension HTTPSource.UploadProtocol {
    /// The fields of all requests about an upload.
    var fields: Fields {
        switch self {
        case .ietf: Fields()
        case .tus: [.tusResumable: "1.0.0"]
        }
    }

    /// The fields of the request that begins the upload of a file.
    func beginning(length: Int64, contentType: String) -> Fields {
        var fields = fields
        fields.set(.uploadLength, "\(length)")
        switch self {
        case .ietf:
            fields.set(.contentType, contentType)
            fields.set(.uploadComplete, "?0")
        case .tus: fields.set(.uploadMetadata, "filetype \(Base64.encode(Array(contentType.utf8)))")
        }
        return fields
    }

    /// The fields of the `PATCH` with the content from an offset on.
    func piece(at offset: Int64, isLast: Bool) -> Fields {
        var fields = fields
        fields.set(.uploadOffset, "\(offset)")
        switch self {
        case .ietf:
            fields.set(.contentType, "application/partial-upload")
            fields.set(.uploadComplete, isLast ? "?1" : "?0")
        case .tus: fields.set(.contentType, "application/offset+octet-stream")
        }
        return fields
    }
}
