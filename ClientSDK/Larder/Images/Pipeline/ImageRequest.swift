public import LarderHTTP

/// How soon somebody wants a picture.
public enum ImagePriority: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// Nobody has asked for it yet.
    case prefetch
    /// It can wait.
    case low
    /// It is on its way into view.
    case normal
    /// It is in view. Decoding does not wait for idle.
    case high
    /// Nothing goes before it.
    case highest

    /// Orders from what can wait to what cannot.
    public static func < (left: ImagePriority, right: ImagePriority) -> Bool { left.rawValue < right.rawValue }
}

/// Which tiers a request may read and write.
public struct ImageCacheOptions: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: Int

    /// Options by their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Do not look into memory.
    public static let skipMemoryRead = ImageCacheOptions(rawValue: 1)
    /// Do not keep the pixels in memory.
    public static let skipMemoryWrite = ImageCacheOptions(rawValue: 2)
    /// Do not look onto the disk.
    public static let skipDiskRead = ImageCacheOptions(rawValue: 4)
    /// Do not keep the file on disk.
    public static let skipDiskWrite = ImageCacheOptions(rawValue: 8)
    /// Ask no server: what is not there is `.notCached`.
    public static let onlyCached = ImageCacheOptions(rawValue: 16)

    /// What may be shown while the server is asked is not shown: this is the asking.
    static let mustValidate = ImageCacheOptions(rawValue: 1 << 16)

    /// Load it anew, whatever is there, and keep that.
    public static let reload: ImageCacheOptions = [.skipMemoryRead, .skipDiskRead]
}

/// Changes a decoded picture: rounds corners, blurs, tints. The changed picture is what is kept in memory.
public protocol ImageProcessor: Sendable {
    /// Names the processor and all of its parameters: pictures with the same names are taken for the same.
    var identifier: String { get }

    /// The changed picture. Called on any thread; what it throws fails the request with `.processing`.
    func process(_ image: DecodedImage) throws -> DecodedImage
}

/// What picture is wanted, how large, and how soon. A value.
public struct ImageRequest: Sendable {
    /// Where it is.
    public var url: String
    /// Header fields to send. All of them count for whether two requests want the same bytes.
    public var fields: Fields
    /// The size in pixels at which it will be shown; nil for every pixel there is.
    public var target: ImageTarget?
    /// How many pixels a point has where it is shown; for whoever draws it, and no part of what is wanted.
    public var scale: Double
    /// How soon.
    public var priority: ImagePriority
    /// Which tiers may be used.
    public var cache: ImageCacheOptions
    /// What is done to the pixels, in order.
    public var processors: [any ImageProcessor]
    /// A tiny picture that came with the post: a file that some decoder reads. It is the first stage.
    public var placeholder: [UInt8]
    /// Whether coarse pictures are wanted while the file is on its way, where its format allows it.
    public var wantsPreviews: Bool

    /// A request.
    public init(
        url: String,
        fields: Fields = Fields(),
        target: ImageTarget? = nil,
        scale: Double = 1,
        priority: ImagePriority = .normal,
        cache: ImageCacheOptions = [],
        processors: [any ImageProcessor] = [],
        placeholder: [UInt8] = [],
        wantsPreviews: Bool = false
    ) {
        self.url = url
        self.fields = fields
        self.target = target
        self.scale = scale
        self.priority = priority
        self.cache = cache
        self.processors = processors
        self.placeholder = placeholder
        self.wantsPreviews = wantsPreviews
    }
}
