/// A talk with rtnetlink(7), without the socket: asks for the interfaces and their addresses, and follows what changes.
///
/// While lists are under way, the interfaces that were known before stay the known ones.
struct NetlinkSession {
    /// What is to be done next.
    enum Action: Hashable {
        case send([UInt8])
        case publish([NetworkInterface])
        /// The kernel refuses to tell: the error's number.
        case giveUp(Int32)
    }

    private enum Phase: Hashable {
        case links
        case addresses
        case following
    }

    private var phase = Phase.following
    private var sequence: UInt32 = 0
    private var table: [Int: NetworkInterface] = [:]
    private var published: [NetworkInterface]?
    private var restarts = 0

    /// How often lists that changed while they were sent are asked for again before the last one is taken as it is.
    private static let restartsMaximum = 8

    /// Begins, also again: after the socket lost messages, nothing that is known counts.
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
