import LarderCoding
import LarderHTTP

/// The images of a world: metadata in memory, bytes in files that only the catalogue names.
///
/// Identifiers contain a digest of the image, so the content of a URL never changes. Immutable, safe from any thread.
package struct ImageCatalogue: Sendable {
    /// One image in one size and format.
    struct Rendition: Sendable {
        let width: Int
        let height: Int
        let mediaType: String
        /// The path of the file. It comes from the catalogue, never from a request.
        let path: String
        let byteCount: Int
        let entityTag: EntityTag
    }

    struct Image: Sendable {
        let id: String
        /// In ascending order of width.
        let renditions: [Rendition]
        /// The form in posts: size, text, widths and an inline placeholder.
        let json: JSONValue
        /// The form in profiles: identifier and URL.
        let reference: JSONValue
    }

    private let images: [String: Image]
    /// In the order of the catalogue's file.
    let identifiers: [String]

    init(_ images: [Image]) {
        self.images = Dictionary(images.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        identifiers = images.map(\.id)
    }

    /// A catalogue without images.
    package static let empty = ImageCatalogue([])

    subscript(id: String) -> Image? { images[id] }
}

extension ImageCatalogue.Image {
    /// The smallest rendition with at least that width, or the widest one.
    ///
    /// - Parameter format: the required media subtype, such as `jpeg`; nil prefers PNG.
    func rendition(width: Int?, format: String?) -> ImageCatalogue.Rendition? {
        let mediaType = format.map { "image/" + $0 }
        let candidates = renditions.filter { $0.mediaType == mediaType ?? "image/png" }
        guard let width else { return candidates.last }
        return candidates.first { $0.width >= width } ?? candidates.last
    }
}
