import Foundation
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice

@Suite("Netlink", .oneMinute)
struct NetlinkTests {
    /// Builds messages as the kernel does.
    private struct Kernel {
        static func number(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }

        static func message(_ type: Int, flags: Int = 0, sequence: Int = 0, _ content: [UInt8]) -> [UInt8] {
            let length = 16 + content.count
            let padding = [UInt8](repeating: 0, count: (4 - length % 4) % 4)
            return number(length, 4) + number(type, 2) + number(flags, 2) + number(sequence, 4) + number(0, 4) + content
                + padding
        }

        static func attribute(_ type: Int, _ value: [UInt8]) -> [UInt8] {
            let length = 4 + value.count
            return number(length, 2) + number(type, 2) + value + [UInt8](repeating: 0, count: (4 - length % 4) % 4)
        }

        static func link(_ index: Int, _ name: String, flags: Int, gone: Bool = false) -> [UInt8] {
            let head = [0, 0] + number(1, 2) + number(index, 4) + number(flags, 4) + number(0, 4)
            return message(gone ? 17 : 16, head + attribute(3, Array(name.utf8) + [0]))
        }

        static func address(_ index: Int, _ bytes: [UInt8], flags: Int = 0x80, gone: Bool = false) -> [UInt8] {
            let family: UInt8 = bytes.count == 4 ? 2 : 10
            let head = [family, 24, UInt8(truncatingIfNeeded: flags), 0] + number(index, 4)
            let local = attribute(bytes.count == 4 ? 2 : 1, bytes)
            return message(gone ? 21 : 20, head + local + attribute(8, number(flags, 4)))
        }

        static func done(_ sequence: Int, flags: Int = 0) -> [UInt8] {
            message(3, flags: flags, sequence: sequence, number(0, 4))
        }
    }

    private let up = 0x1 | 0x40
    private let loopback = 0x1 | 0x40 | 0x8

    /// A session that has read its lists: a loopback and one interface with an address.
    private func following() -> NetlinkSession {
        var session = NetlinkSession()
        #expect(session.start() == [.send(NetlinkMessage.List.links.request(sequence: 1))])
        let links = Kernel.link(1, "lo", flags: loopback) + Kernel.link(2, "eth0", flags: up) + Kernel.done(1)
        #expect(session.received(links) == [.send(NetlinkMessage.List.addresses.request(sequence: 2))])
        #expect(session.received(Kernel.address(2, [10, 0, 0, 5])) == [])
        let actions = session.received(Kernel.done(2))
        #expect(actions.count == 1)
        #expect(status(actions)?.isConnected == true)
        return session
    }

    private func status(_ actions: [NetlinkSession.Action]) -> NetworkStatus? {
        actions.reduce(nil) {
            if case .publish(let interfaces) = $1 { NetworkStatus(interfaces: interfaces) } else { $0 }
        }
    }

    @Test func `interfaces and addresses are known after both lists`() {
        var session = following()
        #expect(session.received(Kernel.link(3, "wlan0", flags: up)) != [], "What is new is told.")
    }

    @Test func `losing the link, the address or the interface means offline`() {
        var session = following()
        #expect(status(session.received(Kernel.link(2, "eth0", flags: 0x1)))?.isConnected == false)
        #expect(
            status(session.received(Kernel.link(2, "eth0", flags: up)))?.isConnected == true,
            "It keeps its address."
        )
        #expect(status(session.received(Kernel.address(2, [10, 0, 0, 5], gone: true)))?.isConnected == false)
        #expect(status(session.received(Kernel.address(2, [10, 0, 0, 6])))?.isConnected == true)
        #expect(status(session.received(Kernel.link(2, "eth0", flags: up, gone: true)))?.isConnected == false)
    }

    @Test func `a change without effect is not reported`() {
        var session = following()
        #expect(session.received(Kernel.link(2, "eth0", flags: up)) == [])
        #expect(session.received(Kernel.address(2, [10, 0, 0, 5])) == [])
        #expect(session.received(Kernel.done(2)) == [], "A list that was over is not over again.")
    }

    @Test func `link-local and loopback addresses are no network`() {
        var session = following()
        _ = session.received(Kernel.address(2, [10, 0, 0, 5], gone: true))
        let linkLocal: [UInt8] = [0xFE, 0x80] + Array(repeating: 0, count: 13) + [1]
        let global: [UInt8] = [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1]
        for bytes in [[169, 254, 3, 4], linkLocal] {
            #expect(status(session.received(Kernel.address(2, bytes)))?.isConnected == false, "\(bytes)")
        }
        // A tentative address cannot be used yet; a confirmed one can.
        #expect(session.received(Kernel.address(2, global, flags: 0x40)) == [])
        #expect(status(session.received(Kernel.address(2, global)))?.isConnected == true)
        #expect(status(session.received(Kernel.address(1, [10, 9, 9, 9])))?.isConnected == true)
        #expect(
            status(session.received(Kernel.link(2, "eth0", flags: 0, gone: true)))?.isConnected == false,
            "Only lo is left."
        )
    }

    @Test func `an inconsistent list is requested again a limited number of times`() {
        var session = NetlinkSession()
        _ = session.start()
        var sequence = 1
        var restarts = 0
        while true {
            let actions = session.received(Kernel.link(2, "eth0", flags: up) + Kernel.done(sequence, flags: 0x10))
            sequence += 1
            if actions == [.send(NetlinkMessage.List.addresses.request(sequence: UInt32(sequence)))] { break }
            #expect(actions == [.send(NetlinkMessage.List.links.request(sequence: UInt32(sequence)))])
            restarts += 1
            if restarts > 20 { break }
        }
        #expect(restarts == 8)
    }

    @Test func `the known state stays while lost messages are recovered`() {
        var session = following()
        _ = session.start()
        #expect(session.received(Kernel.link(1, "lo", flags: loopback)) == [], "Nothing is told of half a list.")
        _ = session.received(Kernel.link(2, "eth0", flags: up) + Kernel.done(3))
        #expect(session.received(Kernel.address(2, [10, 0, 0, 5]) + Kernel.done(4)) == [], "It is as it was.")
    }

    @Test func `a refusal ends the session with its error number`() {
        var session = NetlinkSession()
        _ = session.start()
        let refusal = Kernel.message(2, sequence: 1, Kernel.number(-1, 4) + [UInt8](repeating: 0, count: 16))
        #expect(session.received(refusal) == [.giveUp(1)])
    }

    @Test func `invalid messages are skipped`() {
        let good = Kernel.link(2, "eth0", flags: up) + Kernel.address(2, [10, 0, 0, 5]) + Kernel.done(1)
        #expect(NetlinkMessage.parse(good).count == 3)
        var damaged = 0
        for seed in UInt64(1)...500 {
            var generator = SeededGenerator(seed: seed)
            var bytes = good
            for _ in 0..<generator.uniform(in: 1..<12) {
                bytes[generator.uniform(in: 0..<bytes.count)] = UInt8(truncatingIfNeeded: generator.next())
            }
            if generator.uniform(in: 0..<2) == 0 { bytes.removeLast(generator.uniform(in: 0..<bytes.count)) }
            var session = NetlinkSession()
            _ = session.start()
            let count = NetlinkMessage.parse(bytes).count
            #expect(count <= 3, "seed \(seed)")
            damaged += count < 3 ? 1 : 0
            // Damaged messages must not produce more actions than messages.
            #expect(session.received(bytes).count <= 3, "seed \(seed)")
        }
        #expect((1..<500).contains(damaged), "\(damaged) of 500 inputs lost a message.")
    }

    @Test func `this machine's loopback is found by the real socket`() throws {
        let source = try NetlinkSource()
        let loopback = source.status.interfaces.first { $0.isLoopback }
        #expect(loopback?.name == "lo" && loopback?.isUsable == false)
        let registration = source.observe { _ in }
        _ = registration
    }

    /// The number of netlink sockets of this process.
    private func openSockets() throws -> Int {
        let table = try String(contentsOfFile: "/proc/self/net/netlink", encoding: .utf8)
        let inodes = Set(table.split(separator: "\n").compactMap { $0.split(separator: " ").last })
        return try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
            // The descriptor of the listing itself is gone by now.
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
            guard let target, target.hasPrefix("socket:[") else { return false }
            return inodes.contains(target.dropFirst(8).dropLast())
        }
    }

    @Test func `sources leave no descriptors behind`() async throws {
        for _ in 0..<50 { _ = try NetlinkSource() }
        // A source's thread closes its socket. Other tests have one or two at a time.
        while try openSockets() >= 50, !Task.isCancelled { await Task.yield() }
        #expect(try openSockets() < 50)
        let (source, explanation) = NetworkMonitor.systemSource()
        #expect(!explanation.isEmpty && !source.status.interfaces.isEmpty)
    }
}
