/// The rtnetlink(7) protocol without the socket: requests the interfaces and their addresses, and follows changes.
///
/// Until a requested list is complete, the previous interfaces stay the known ones.
struct NetlinkSession {
    /// The next action of the driver.
    enum Action: Hashable {
        case send([UInt8])
        case publish([NetworkStatus.Interface])
        /// The kernel refused with this error number.
        case giveUp(Int32)
    }

    private enum Phase: Hashable {
        case links
        case addresses
        case following
    }

    private var phase = Phase.following
    private var sequence: UInt32 = 0
    private var table: [Int: NetworkStatus.Interface] = [:]
    private var published: [NetworkStatus.Interface]?
    private var restarts = 0

    /// The number of times that a list which changed while it was sent is requested again.
    private static let restartsMaximum = 8

    /// Starts, or restarts after the socket lost messages: everything known is discarded.
    mutating func start() -> [Action] {
        table = [:]
        phase = .links
        sequence += 1
        return [.send(NetlinkMessage.List.links.request(sequence: sequence))]
    }

    mutating func received(_ bytes: [UInt8]) -> [Action] {
        var actions: [Action] = []
        for message in NetlinkMessage.parse(bytes) {
            switch message {
            case .link(var link):
                link.addresses = table[link.index]?.addresses ?? []
                table[link.index] = link
            case .linkGone(let index): table[index] = nil
            case .address(let address, let index): table[index]?.addresses.insert(address)
            case .addressGone(let address, let index): table[index]?.addresses.remove(address)
            case .failed(let number, let code):
                if number == sequence, phase != .following { actions.append(.giveUp(code)) }
            case .done(let number, let isInconsistent):
                guard number == sequence, phase != .following else { continue }
                actions += finished(isInconsistent: isInconsistent)
            }
        }
        let interfaces = table.values.sorted { $0.index < $1.index }
        if phase == .following, interfaces != published {
            published = interfaces
            actions.append(.publish(interfaces))
        }
        return actions
    }

    private mutating func finished(isInconsistent: Bool) -> [Action] {
        if isInconsistent, restarts < Self.restartsMaximum {
            restarts += 1
            return start()
        }
        guard phase == .links else {
            phase = .following
            restarts = 0
            return []
        }
        phase = .addresses
        sequence += 1
        return [.send(NetlinkMessage.List.addresses.request(sequence: sequence))]
    }
}
