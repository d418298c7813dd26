import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Host resolver", .oneMinute) struct HostResolverTests {
    private func endpoint(_ host: String) -> Endpoint { Endpoint(host: host, port: 80) }

    @Test func `an address needs no lookup`() {
        let resolver = HostResolver { _, _ in .failure(SocketCall.Failure(description: "looked up")) }
        for host in ["127.0.0.1", "::1"] {
            let found = Mutex<HostResolver.Found?>(nil)
            resolver.addresses(of: endpoint(host)) { result in found.withLock { $0 = result } }
            #expect((try? found.withLock { $0 }?.get().count) == 1)
        }
        #expect(resolver.threadCount == 0)
    }

    @Test func `concurrent lookups of one host are shared, and at most four run at a time`() async {
        let (gate, opener) = AsyncStream<Void>.makeStream()
        let looked = Mutex<[String]>([])
        let begun = Pending<Bool>()
        let hold = Hold()
        let resolver = HostResolver { host, _ in
            let count = looked.withLock { looked in
                looked.append(host)
                return looked.count
            }
            if count == 4 { begun.finish(true) }
            // Stands for the system's resolver, which blocks.
            hold.wait()
            return .success([])
        }
        let answers = Mutex(0)
        for host in ["a.test", "a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "a.test"] {
            resolver.addresses(of: endpoint(host)) { _ in
                if answers.withLock({ count in
                    count += 1
                    return count == 8
                }) {
                    opener.finish()
                }
            }
        }
        #expect(await begun.value(ifCancelled: false))
        #expect(resolver.threadCount == 4 && looked.withLock { $0.count } == 4)
        hold.open()
        for await _ in gate {}
        #expect(looked.withLock { $0.sorted() } == ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test"])
    }
}
