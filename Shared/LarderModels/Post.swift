/// A post as the signed-in user sees it.
public struct Post: Codable, Sendable, Hashable, Identifiable {
    /// An image with what a list needs before it is loaded.
    public struct Image: Codable, Sendable, Hashable {
        /// The image's ID.
        public var id: String
        /// The path, relative to the server; `?width=` selects a rendition.
        public var url: String
        /// The original's width in pixels.
        public var width: Int
        /// The original's height in pixels.
        public var height: Int
        /// The text alternative.
        public var alt: String
        /// A small preview as a `data:` URL.
        public var placeholder: String
        /// The widths of the renditions, in pixels.
        public var widths: [Int]
    }

    /// The server's ID; a local one until the server has confirmed the post.
    public var id: String
    /// The user ID of the author.
    public var authorID: String
    public var text: String
    /// The image; nil for a post without one.
    public var image: Image?
    /// The creation time, RFC 3339.
    public var createdAt: String
    /// The time of the last edit, RFC 3339; nil if it was never edited.
    public var editedAt: String?
    /// The number of likes.
    public var likeCount: Int
    /// Whether the signed-in user likes it.
    public var likedByMe: Bool
    /// Increases with every change; 0 until the server has confirmed the post.
    public var version: Int64
    /// The time of the last change, RFC 3339.
    public var updatedAt: String

    /// A post with the given fields and without likes.
    public init(
        id: String,
        authorID: String,
        text: String,
        image: Image? = nil,
        createdAt: String,
        editedAt: String? = nil,
        version: Int64,
        updatedAt: String
    ) {
        self.id = id
        self.authorID = authorID
        self.text = text
        self.image = image
        self.createdAt = createdAt
        self.editedAt = editedAt
        likeCount = 0
        likedByMe = false
        self.version = version
        self.updatedAt = updatedAt
    }

    private enum CodingKeys: String, CodingKey {
        case id, text, image, createdAt, editedAt, likeCount, likedByMe, version, updatedAt
        case authorID = "authorId"
    }
}
