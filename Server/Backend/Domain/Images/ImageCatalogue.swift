package import LarderCoding
package import LarderHTTP

/// The pictures of a world: described in memory, their bytes in files that only the catalogue can name.
///
/// Identifiers carry a digest of the picture, so what a URL names never changes. Immutable, safe from any thread.
package struct ImageCatalogue: Sendable {
    /// One picture in one size and format.
    package struct Rendition: Sendable {
        package let width: Int
        package let height: Int
        package let mediaType: String
        /// Where the bytes are. It comes from the catalogue's own file, never from a request.
        package let path: String
        package let byteCount: Int
        package let entityTag: EntityTag
    }

    /// One picture.
    package struct Image: Sendable {
        package let id: String
        /// In ascending order of width.
        package let renditions: [Rendition]
        /// How a post shows it: size, text, widths and a placeholder small enough to stand in the post.
        package let json: JSONValue
        /// How a profile shows it: identifier and URL.
        package let reference: JSONValue
    }

    private let images: [String: Image]
    /// In the order of the catalogue's file.
    package let identifiers: [String]

    package init(_ images: [Image]) {
        self.images = Dictionary(images.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        identifiers = images.map(\.id)
    }

    /// A world without pictures.
    package static let empty = ImageCatalogue([])

    package subscript(id: String) -> Image? { images[id] }
}

extension ImageCatalogue.Image {
    /// The smallest rendition that is at least that wide, or the widest there is.
    ///
    /// - Parameter format: a media subtype that it must have, such as `jpeg`; PNG is preferred otherwise.
    func rendition(width: Int?, format: String?) -> ImageCatalogue.Rendition? {
        let mediaType = format.map { "image/" + $0 }
        let candidates = renditions.filter { $0.mediaType == mediaType ?? "image/png" }
        guard let width else { return candidates.last }
        return candidates.first { $0.width >= width } ?? candidates.last
    }
}
