import Larder
import LarderDemo
import LarderModels
import LarderResources
import LarderStorage

/// Oracles: limits that devices reach, and changes of the account.
extension Device {
    /// Nothing exceeds its limit: memory, the content on the disk, and what waits to be sent.
    func judgeLimits() {
        guard let limits = simulation.plan.limits, let client else { return }
        let cache = client.cache
        func expect(_ what: String, _ value: Int, atMost limit: Int) {
            simulation.expect(value <= limit, .bounds, "\(name): \(value) of \(limit) \(what)")
            if value * 10 >= limit * 9 { simulation.coverage.count("almost \(what)") }
        }
        // Lists and assembled values may each take a quarter on top, and rows beside the disk the least limit.
        expect("bytes in memory", cache.memoryCost, atMost: limits.memoryBytes * 3 / 2 + (64 << 10))
        let entries = cache.outbox.entries
        expect("operations", entries.count, atMost: limits.operations)
        let bytes = entries.reduce(0) {
            $0 + $1.payload.count + $1.operation.utf8.count + $1.scope.utf8.count + $1.idempotencyKey.utf8.count
        }
        expect("bytes of operations", bytes, atMost: limits.operationBytes)
        // A store that cannot be read says nothing.
        guard !machine.hasDiskTrouble, !hasDied, let stored = try? cache.disk?.statistics() else { return }
        expect("bytes on the disk", Int(stored.bytes), atMost: Int(limits.diskBytes))
    }

    /// What belongs to one person is never held for another.
    func judgeAccount() {
        guard let client else { return }
        let held = client.cache.stored(client.bank.accounts)?.value?.items.map(\.id) ?? []
        let known = simulation.accountsByHandle[handle] ?? accountsOnServer()
        let foreign = held.filter { !known.contains($0) }
        simulation.expect(foreign.isEmpty, .privacy, "\(name): the accounts \(foreign) do not belong to \(handle)")
        let conversations = client.cache.stored(client.chat.conversations)?.value?.items.map(\.id) ?? []
        let others = conversations.filter { !simulation.ledger.conversations(of: handle).contains($0) }
        simulation.expect(others.isEmpty, .privacy, "\(name): \(handle) has no part in the conversations \(others)")
    }

    private func accountsOnServer() -> Set<String> {
        let accounts: [Account] = simulation.list("/v1/accounts", handle)
        let all = Set(accounts.map(\.id))
        simulation.accountsByHandle[handle] = all
        return all
    }

    /// A person who has got the machine from somebody else finds nothing.
    func judgeNewAccount() {
        guard machine.hasNewAccount, let client else { return }
        machine.hasNewAccount = false
        simulation.coverage.count("changes of the account")
        let cache = client.cache
        let isEmpty =
            cache.stored(client.feed.newest)?.value == nil && cache.stored(client.bank.accounts)?.value == nil
            && cache.stored(client.chat.conversations)?.value == nil && cache.outbox.entries.isEmpty
        simulation.expect(isEmpty, .privacy, "\(name): something is held for \(handle), who has never signed in")
        simulation.expect(client.session.userID == nil, .privacy, "\(name): somebody is signed in for \(handle)")
    }

    /// Signs out; somebody without a device signs in.
    func changeAccount(_ choice: UInt64, _ client: LarderClient) async throws {
        guard machine.processes == 1 else { return }
        let taken = Set(simulation.devices.map(\.handle))
        let free = simulation.people.filter { !taken.contains($0) }
        guard !free.isEmpty else { return }
        try await signOut(client, next: free[Int(choice % UInt64(free.count))])
        await simulation.wait(500)
        simulation.reopen(self)
    }
}
