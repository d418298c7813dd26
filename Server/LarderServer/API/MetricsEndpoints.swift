import Glibc
import LarderEngine
import LarderHTTP

/// `GET /_larder/metrics`: the server's figures in the text format of Prometheus (version 0.0.4).
enum MetricsEndpoints {
    static func read(_ call: ControlCall) -> Reply? {
        let (totals, worlds) = (call.plane.counts.totals, call.plane.worlds.all)
        let journals = worlds.map(\.control.journal)
        var text = MetricsText()
        text.add(
            "larder_requests_total",
            "counter",
            "Requests that are over, by what takes their path, and status; 0 is no reply."
        ) {
            totals.requests.map { ("route=\"\($0.key.route.rawValue)\",status=\"\($0.key.status)\"", Double($0.value)) }
        }
        text.add("larder_connections_open", "gauge", "Open connections of clients.") {
            [("", Double(call.plane.connectionCount))]
        }
        text.add("larder_faults_applied_total", "counter", "Faults applied to requests, by action.") {
            totals.faults.map { ("action=\"\($0.key)\"", Double($0.value)) }
        }
        text.add("larder_contract_findings_total", "counter", "Findings of the contract.") {
            [("", Double(totals.contractFindings))]
        }
        text.add("larder_worlds", "gauge", "Worlds.") { [("", Double(worlds.count))] }
        text.add("larder_journal_entries", "gauge", "Stored journal entries of all worlds.") {
            [("", Double(journals.reduce(0) { $0 + $1.size.entries }))]
        }
        text.add("larder_journal_bytes", "gauge", "Heads and bodies in the journals of all worlds.") {
            [("", Double(journals.reduce(0) { $0 + $1.size.bytes }))]
        }
        text.add("process_resident_memory_bytes", "gauge", "Resident memory of the process.") {
            residentBytes.map { [("", $0)] } ?? []
        }
        text.add("process_cpu_seconds_total", "counter", "Processor time of the process.") { [("", processorSeconds)] }
        return .control(text: text.text, mediaType: "text/plain; version=0.0.4; charset=utf-8")
    }

    /// Nil where `/proc` is not mounted.
    private static var residentBytes: Double? {
        let bytes: [UInt8]
        do { bytes = try SourceFile.bytes("/proc/self/statm") } catch { return nil }
        let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? Double(fields[1]).map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) } : nil
    }

    private static var processorSeconds: Double {
        var usage = rusage()
        guard unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
        return [usage.ru_utime, usage.ru_stime].reduce(0.0) { (seconds: Double, time: timeval) -> Double in
            seconds + Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000
        }
    }
}

private struct MetricsText {
    private(set) var text = ""

    /// - Parameter samples: the labels and the value of each; a metric without samples is left out.
    mutating func add(
        _ name: String,
        _ type: String,
        _ help: String,
        _ samples: () -> [(labels: String, value: Double)]
    ) {
        let samples = samples().sorted { $0.labels < $1.labels }
        guard !samples.isEmpty else { return }
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
        for (labels, value) in samples {
            let number = Int64(exactly: value).map { String($0) } ?? String(value)
            text += "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(number)\n"
        }
    }
}
