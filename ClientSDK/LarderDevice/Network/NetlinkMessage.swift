/// The messages of rtnetlink(7) that are used here. Numbers are from linux/netlink.h, rtnetlink.h, if_link.h and if_addr.h, which
/// Swift's Glibc module does not have; they are the kernel's interface and do not change.
enum NetlinkMessage: Hashable {
    /// An interface was added or has changed.
    case link(NetworkStatus.Interface)
    /// An interface was removed.
    case linkGone(index: Int)
    /// An address was added to an interface.
    case address(NetworkStatus.Interface.Address, index: Int)
    /// An address was removed.
    case addressGone(NetworkStatus.Interface.Address, index: Int)
    /// The end of the requested list. It must be requested again if it changed meanwhile.
    case done(sequence: UInt32, isInconsistent: Bool)
    /// The request failed with this error number.
    case failed(sequence: UInt32, code: Int32)

    static let groups: UInt32 = 0x1 | 0x10 | 0x100  // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
    static let family: Int32 = 16  // AF_NETLINK

    /// A request for a list.
    enum List: UInt16 {
        case links = 18  // RTM_GETLINK
        case addresses = 22  // RTM_GETADDR

        /// The request's bytes: a head and one byte of family, which is any.
        func request(sequence: UInt32) -> [UInt8] {
            var bytes: [UInt8] = []
            func append(_ value: UInt32, _ count: Int) {
                #if _endian(big)
                    let places = (0..<count).reversed()
                #else
                    let places = 0..<count
                #endif
                for place in places { bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * place))) }
            }
            append(20, 4)
            append(UInt32(rawValue), 2)
            append(0x301, 2)  // NLM_F_REQUEST | NLM_F_DUMP
            append(sequence, 4)
            append(0, 4)
            append(0, 4)
            return bytes
        }
    }

    /// The messages of a datagram; unknown and truncated ones are skipped.
    static func parse(_ bytes: [UInt8]) -> [NetlinkMessage] {
        var messages: [NetlinkMessage] = []
        var rest = bytes[...]
        while rest.count >= 16 {
            let length = Int(rest.number(at: 0, 4))
            guard length >= 16, length <= rest.count else { break }
            if let message = NetlinkMessage(rest.prefix(length)) { messages.append(message) }
            rest = rest.dropFirst((length + 3) & ~3)
        }
        return messages
    }

    private init?(_ message: ArraySlice<UInt8>) {
        let flags = message.number(at: 6, 2)
        let sequence = UInt32(message.number(at: 8, 4))
        let content = message.dropFirst(16)
        switch message.number(at: 4, 2) {
        case 2:  // NLMSG_ERROR
            guard content.count >= 4 else { return nil }
            let code = Int32(truncatingIfNeeded: content.number(at: 0, 4))
            guard code != 0 else { return nil }
            self = .failed(sequence: sequence, code: -code)
        case 3: self = .done(sequence: sequence, isInconsistent: flags & 0x10 != 0)  // NLMSG_DONE, NLM_F_DUMP_INTR
        case 16:  // RTM_NEWLINK
            guard let link = Self.link(content) else { return nil }
            self = .link(link)
        case 17:  // RTM_DELLINK
            guard let link = Self.link(content) else { return nil }
            self = .linkGone(index: link.index)
        case 20:  // RTM_NEWADDR
            guard let (address, index, isUsable) = Self.address(content) else { return nil }
            self = isUsable ? .address(address, index: index) : .addressGone(address, index: index)
        case 21:  // RTM_DELADDR
            guard let (address, index, _) = Self.address(content) else { return nil }
            self = .addressGone(address, index: index)
        default: return nil
        }
    }

    /// struct ifinfomsg and its attributes.
    private static func link(_ content: ArraySlice<UInt8>) -> NetworkStatus.Interface? {
        guard content.count >= 16 else { return nil }
        let flags = content.number(at: 8, 4)
        var name = ""
        for (type, value) in attributes(content.dropFirst(16)) where type == 3 {  // IFLA_IFNAME
            name = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
        }
        return NetworkStatus.Interface(
            index: Int(content.number(at: 4, 4)),
            name: name,
            isUp: flags & 0x1 != 0,  // IFF_UP
            isRunning: flags & 0x40 != 0,  // IFF_RUNNING
            isLoopback: flags & 0x8 != 0  // IFF_LOOPBACK
        )
    }

    /// struct ifaddrmsg and its attributes. A tentative address cannot be used yet.
    private static func address(_ content: ArraySlice<UInt8>) -> (NetworkStatus.Interface.Address, Int, isUsable: Bool)?
    {
        guard content.count >= 8 else { return nil }
        let family: NetworkStatus.Interface.Address.Family
        switch content.number(at: 0, 1) {
        case 2: family = .ipv4
        case 10: family = .ipv6
        default: return nil
        }
        var flags = content.number(at: 2, 1)
        var peer: ArraySlice<UInt8>?
        var local: ArraySlice<UInt8>?
        for (type, value) in attributes(content.dropFirst(8)) {
            switch type {
            case 1: peer = value  // IFA_ADDRESS
            case 2: local = value  // IFA_LOCAL: on a point-to-point link the other is the peer's.
            case 8: if value.count >= 4 { flags = value.number(at: 0, 4) }  // IFA_FLAGS
            default: break
            }
        }
        guard let bytes = local ?? peer, let address = NetworkStatus.Interface.Address(family, bytes: Array(bytes))
        else {
            return nil
        }
        let isUsable = flags & 0x48 == 0  // IFA_F_TENTATIVE, IFA_F_DADFAILED
        return (address, Int(content.number(at: 4, 4)), isUsable)
    }

    private static func attributes(_ content: ArraySlice<UInt8>) -> [(type: UInt64, value: ArraySlice<UInt8>)] {
        var attributes: [(UInt64, ArraySlice<UInt8>)] = []
        var rest = content
        while rest.count >= 4 {
            let length = Int(rest.number(at: 0, 2))
            guard length >= 4, length <= rest.count else { break }
            attributes.append((rest.number(at: 2, 2) & 0x3FFF, rest.prefix(length).dropFirst(4)))
            rest = rest.dropFirst((length + 3) & ~3)
        }
        return attributes
    }
}

extension ArraySlice<UInt8> {
    /// A number of so many bytes in host byte order, as in netlink.
    fileprivate func number(at offset: Int, _ count: Int) -> UInt64 {
        let start = startIndex + offset
        #if _endian(big)
            return self[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
        #else
            return self[start..<start + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        #endif
    }
}
