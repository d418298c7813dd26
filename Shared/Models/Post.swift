/// A post, as one reader sees it.
public struct Post: Codable, Sendable, Hashable, Identifiable {
    /// A picture with what a list needs before it has loaded it.
    public struct Image: Codable, Sendable, Hashable {
        /// The picture's identifier.
        public var id: String
        /// Where it is, relative to the server; `?width=` picks a rendition.
        public var url: String
        /// The original's width in pixels.
        public var width: Int
        /// The original's height in pixels.
        public var height: Int
        /// What it shows, in words.
        public var alt: String
        /// A few pixels as a `data:` URL.
        public var placeholder: String
        /// The widths that there are.
        public var widths: [Int]
    }

    /// The post's identifier.
    public var id: String
    /// Who wrote it.
    public var authorId: String
    /// What it says.
    public var text: String
    /// Its picture.
    public var image: Image?
    /// When it was written, RFC 3339.
    public var createdAt: String
    /// When its text was last changed, RFC 3339.
    public var editedAt: String?
    /// How many like it.
    public var likeCount: Int
    /// Whether the reader does.
    public var likedByMe: Bool
    /// Grows with every change.
    public var version: Int64
    /// When it last changed, RFC 3339.
    public var updatedAt: String
}
