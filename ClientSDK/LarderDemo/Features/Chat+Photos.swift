public import Larder
import LarderModels

/// A photo of a message, before the server has it and after.
struct Photo: CacheEntity {
    static let entityType = "photo"
    var id: String
}

extension LarderClient {
    /// Sends a message with a photo: both are durable when this returns. The photo is uploaded in pieces, also after a restart, and then the
    /// message is sent.
    ///
    /// - Parameters:
    ///   - text: the message.
    ///   - photo: the path of a PNG or JPEG file, which is copied.
    ///   - conversation: the conversation's ID.
    /// - Throws: as `Chat.send`; `.invalidArgument` if the file cannot be read, or has another suffix.
    @discardableResult
    public func send(
        _ text: String,
        photo: String,
        to conversation: String
    ) async throws(LarderError) -> OperationID? {
        let types = ["png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg"]
        let suffix = photo.split(separator: ".").last.map { $0.lowercased() } ?? ""
        guard let type = types[suffix] else {
            throw LarderError(.invalidArgument, "\(photo) is not a .png or .jpg file. Nothing was sent.")
        }
        // Refused before the outbox has the photo, which it may send at once.
        var message = try chat.change(.create, nil, conversation, text)
        let id = APIClient.localID()
        message.imageID = id
        var upload = APIClient.Write(.post, "/v1/photos")
        upload.scope = Chat.scope(conversation)
        upload.create(Photo(id: id))
        let operation = try await base.upload(upload, file: photo, contentType: type)
        do { return try base.cache.enqueue(message, chat.operation) } catch {
            // Without its message nobody would see the photo. One that is being sent stays.
            do { try base.cache.outbox.drop(operation) } catch let failure {
                throw LarderError(error.code, "\(error) The photo stays in the outbox: \(failure)", cause: error)
            }
            throw error
        }
    }
}
