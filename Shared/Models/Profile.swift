/// A person, as the API tells of them.
public struct Profile: Codable, Sendable, Hashable, Identifiable {
    /// A picture by reference.
    public struct ImageReference: Codable, Sendable, Hashable {
        /// The picture's identifier.
        public var id: String
        /// Where it is, relative to the server.
        public var url: String
    }

    /// The person's identifier.
    public var id: String
    /// The name by which others address them, without `@`.
    public var handle: String
    /// The name that they show.
    public var displayName: String
    /// What they say of themselves.
    public var bio: String
    /// Where they say they are.
    public var location: String
    /// Their portrait.
    public var avatar: ImageReference?
    /// The picture above their profile.
    public var cover: ImageReference?
    /// Grows with every change.
    public var version: Int64
    /// When it last changed, RFC 3339.
    public var updatedAt: String
}
