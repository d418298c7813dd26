import Larder

extension TerminalGraphics {
    /// What the environment says; nil: the terminal must be asked. Inside of tmux and screen the variables are those of the outer
    /// terminal, which does not get the graphics.
    init?(environment: [String: String]) {
        let (terminal, program) = (environment["TERM"] ?? "", environment["TERM_PROGRAM"] ?? "")
        if terminal == "dumb" || terminal == "linux" {
            self = .blocks
            return
        }
        if terminal.hasPrefix("screen") || terminal.hasPrefix("tmux") || environment["TMUX"] != nil { return nil }
        let isKitty =
            terminal == "xterm-kitty" || terminal == "xterm-ghostty" || program == "ghostty" || program == "WezTerm"
            || !(environment["KITTY_WINDOW_ID"] ?? "").isEmpty
        guard isKitty else { return nil }
        self = .kitty
    }

    /// Asks for kitty graphics, and for the primary device attributes (DA1), which every terminal answers last.
    static let question = "\u{1b}_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\u{1b}\\\u{1b}[c"

    /// What the replies to `question` say.
    ///
    /// - Returns: nil until the device attributes are complete.
    init?(answer: [UInt8]) {
        let text = String(decoding: answer, as: UTF8.self)
        guard let attributes = Self.attributes(text) else { return nil }
        if text.contains("\u{1b}_Gi=31;OK") {
            self = .kitty
        } else {
            self = attributes.contains("4") ? .sixel : .blocks
        }
    }

    /// The parameters of `ESC [ ? … c`.
    private static func attributes(_ text: String) -> [Substring]? {
        var rest = Substring(text)
        while let start = rest.firstRange(of: "\u{1b}[?") {
            rest = rest[start.upperBound...]
            let parameters = rest.prefix { $0.isNumber || $0 == ";" }
            if rest[parameters.endIndex...].first == "c" { return parameters.split(separator: ";") }
        }
        return nil
    }

    /// The escape sequence that draws a picture; nil for `blocks`, which are lines of text.
    func sequence(_ image: DecodedImage) -> String? {
        switch self {
        case .kitty: KittyGraphics.sequence(image)
        case .sixel: SixelGraphics.sequence(image)
        case .blocks: nil
        }
    }
}
