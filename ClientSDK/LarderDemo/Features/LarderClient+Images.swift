import Foundation
public import Larder
public import LarderModels

extension LarderClient {
    /// A request for the image of a post, in the smallest rendition that fills `width`, or in a smaller one on a poor network.
    ///
    /// An image that is in memory in full size is requested in full size on any network.
    ///
    /// - Parameters:
    ///   - image: the image of a post.
    ///   - width: the shown width in pixels.
    ///   - height: the shown height in pixels; nil: by the aspect ratio of the image.
    public func imageRequest(for image: Post.Image, width: Int, height: Int? = nil) -> ImageRequest {
        let width = max(1, width)
        // Bounded, because a reply may state any sizes.
        let shownHeight = Double(width) * Double(max(1, image.height)) / Double(max(1, image.width))
        let height = height ?? Int(min(shownHeight, Double(Int32.max)))
        let target = ImageTarget(width: width, height: height)
        func request(_ pixels: Int) -> ImageRequest {
            let rendition = image.widths.filter { $0 >= pixels }.min() ?? image.widths.max() ?? pixels
            var request = ImageRequest(url: absolute(image.url) + "?width=\(rendition)", target: target)
            request.placeholder = Self.bytes(ofDataURL: image.placeholder)
            return request
        }
        let full = request(width)
        guard let behavior = base.network?.behavior, behavior.pixels(width) < width,
            base.images.cachedImage(for: full) == nil
        else {
            return full
        }
        return request(behavior.pixels(width))
    }

    /// Resolves a path against the server's URL. A server below a path returns paths that start with it.
    private func absolute(_ url: String) -> String {
        guard url.hasPrefix("/") else { return url }
        // The third slash ends the authority.
        let slashes = base.source.base.indices.filter { base.source.base[$0] == "/" }
        let end = slashes.count > 2 ? slashes[2] : base.source.base.endIndex
        let below = base.source.base[end...]
        return below.isEmpty || url.hasPrefix(below + "/") ? base.source.base[..<end] + url : base.source.base + url
    }

    private static func bytes(ofDataURL text: String) -> [UInt8] {
        guard text.hasPrefix("data:"), let comma = text.firstIndex(of: ",") else { return [] }
        return Data(base64Encoded: String(text[text.index(after: comma)...])).map(Array.init) ?? []
    }
}
