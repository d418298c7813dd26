import LarderCoding
public import LarderModels

extension LarderClient {
    /// A request for a post's picture as it is to be shown: in the rendition that fits, or in a smaller one on a bad network.
    ///
    /// What is in memory in full is asked for in full, whatever the network is good for.
    ///
    /// - Parameters:
    ///   - width: how wide it will be, in pixels.
    ///   - height: how high; nil: as its proportions demand.
    public func picture(_ image: Post.Image, width: Int, height: Int? = nil) -> ImageRequest {
        let width = max(1, width)
        let height = height ?? max(1, width * max(1, image.height) / max(1, image.width))
        let target = ImageTarget(width: width, height: height)
        func request(_ pixels: Int) -> ImageRequest {
            let rendition = image.widths.filter { $0 >= pixels }.min() ?? image.widths.max() ?? pixels
            var request = ImageRequest(url: absolute(image.url) + "?width=\(rendition)", target: target)
            request.placeholder = Self.bytes(ofDataURL: image.placeholder)
            return request
        }
        let full = request(width)
        guard let conduct = network?.conduct, conduct.pixels(width) < width, images.cachedImage(for: full) == nil else {
            return full
        }
        return request(conduct.pixels(width))
    }

    /// Paths are the server's own; where it lives below a path, it has put that before them.
    private func absolute(_ url: String) -> String {
        guard url.hasPrefix("/") else { return url }
        // Behind the authority: scheme, colon, two slashes.
        let slashes = source.base.indices.filter { source.base[$0] == "/" }
        let end = slashes.count > 2 ? slashes[2] : source.base.endIndex
        let below = source.base[end...]
        return below.isEmpty || url.hasPrefix(below + "/") ? source.base[..<end] + url : source.base + url
    }

    private static func bytes(ofDataURL text: String) -> [UInt8] {
        guard text.hasPrefix("data:"), let comma = text.firstIndex(of: ",") else { return [] }
        return Base64.decode(String(text[text.index(after: comma)...])) ?? []
    }
}
