/// A live channel that a filter can send on and end.
package protocol LiveOutput: LiveSink {
    /// The kind of channel, as in the journal.
    var kind: String { get }

    func emit(_ event: LiveEvent)

    /// - Parameter code: the close code; nil ends the connection without a close frame.
    func end(code: UInt16?)
}

/// A filter for the frames of one live channel: records them and may drop, repeat, delay or reorder them.
package protocol LiveFilter: AnyObject, Sendable {
    func opened(_ output: any LiveOutput)

    func closed()

    /// A frame of that many bytes came from the peer.
    func received(_ bytes: Int, from output: any LiveOutput)

    /// Sends an event, or does not. The store may be locked: the implementation only hands bytes on.
    func pass(_ event: LiveEvent, to output: any LiveOutput)
}
