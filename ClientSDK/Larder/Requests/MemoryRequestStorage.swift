public import LarderTime

/// Answers in memory: gone with the process. Safe from any thread.
public final class MemoryRequestStorage: RequestStorage {
    private let tier: MemoryTier<String, RecordedAnswer>

    /// - Parameter bytesMaximum: how many bytes of answers are kept; what was not used for longest leaves first.
    public init(bytesMaximum: Int = 8 << 20) { tier = MemoryTier(limits: .init(cost: bytesMaximum)) }

    /// The answer under a key.
    public func answer(for key: String) -> RecordedAnswer? { tier[key] }

    /// Records an answer.
    public func store(_ answer: RecordedAnswer, for key: String) {
        tier.store(answer, for: key, cost: answer.payload.count + key.utf8.count + 128)
    }

    /// Removes what is under a key.
    public func remove(_ key: String) { tier.remove(key) }

    /// Removes what is outdated. Cost: it looks at all.
    public func removeOutdated(at now: WallTime) -> Int {
        let outdated = tier.keys.filter { key in tier.peek(key).map { $0.outdatedAt <= now } ?? false }
        for key in outdated { tier.remove(key) }
        return outdated.count
    }

    /// Removes everything.
    public func removeAll() { tier.removeAll() }
}
