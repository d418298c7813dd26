/// How pictures are drawn in a terminal.
enum TerminalGraphics: String, CaseIterable {
    /// The graphics protocol of kitty: all pixels, in full colour.
    case kitty
    /// Sixel graphics: all pixels, in 256 colours.
    case sixel
    /// Two pixels in each character cell.
    case blocks
}
