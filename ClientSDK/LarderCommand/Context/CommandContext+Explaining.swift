import Larder
import LarderCoding

extension CommandContext {
    /// Prints the requests of the command with reasons and verdicts, if `--explain` asks for it.
    func explain() async {
        guard let requests, let journal else { return }
        let (kept, dropped) = requests.exchanges
        var entries: [JSONValue]?
        var problem: String?
        do { entries = try await found(kept, in: journal) } catch { problem = "\(error)" }
        let explanation = Explanation(kept, dropped: dropped, entries, problem: problem)
        if terminal.isJSON { return terminal.json(.members([("explain", explanation.json)])) }
        terminal.line()
        for line in explanation.text { terminal.line(line) }
    }

    /// The entries of the requests. An entry is written when the server has sent the last byte, which may be a moment after its arrival.
    private func found(_ exchanges: [MonitoredTransport.Exchange], in journal: (control: ControlClient, start: Int64))
        async throws
        -> [JSONValue]
    {
        let wanted = Set(exchanges.filter { $0.status != nil }.map(\.id))
        var entries: [JSONValue] = []
        for attempt in 1...5 {
            if attempt > 1 { try await uptime.sleep(until: uptime.uptime + .milliseconds(50)) }
            let path = "/journal?kind=exchange&limit=10000&afterNumber=\(journal.start)"
            entries = try await journal.control.get(path)["items"]?.array ?? []
            if wanted.isSubset(of: entries.compactMap { $0["requestID"]?.string }) { break }
        }
        return entries
    }
}
