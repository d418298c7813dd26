/// The public profile of a user.
public struct Profile: Codable, Sendable, Hashable, Identifiable {
    public struct ImageReference: Codable, Sendable, Hashable {
        /// The image's ID.
        public var id: String
        /// The path, relative to the server.
        public var url: String
    }

    /// The user's ID.
    public var id: String
    /// The unique user name, without `@`.
    public var handle: String
    public var displayName: String
    /// A short description.
    public var bio: String
    /// The location as free text.
    public var location: String
    /// The profile image.
    public var avatar: ImageReference?
    /// The header image of the profile.
    public var cover: ImageReference?
    /// Increases with every change.
    public var version: Int64
    /// The time of the last change, RFC 3339.
    public var updatedAt: String
}
