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

    /// The post's ID.
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
    /// Increases with every change.
    public var version: Int64
    /// The time of the last change, RFC 3339.
    public var updatedAt: String

    private enum CodingKeys: String, CodingKey {
        case id, text, image, createdAt, editedAt, likeCount, likedByMe, version, updatedAt
        case authorID = "authorId"
    }
}
