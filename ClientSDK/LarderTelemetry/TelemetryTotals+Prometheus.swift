import LarderEvents
import LarderTime

extension TelemetryTotals {
    /// The totals in Prometheus' text format, version 0.0.4, sorted: the content of `/metrics`.
    ///
    /// Durations are histograms in seconds. There are at most `namesMaximum` values for the label `feature`.
    public var prometheus: String {
        var text = PrometheusText()
        let features = features.sorted { $0.key < $1.key }
        func perFeature(_ name: String, _ help: String, _ value: (Feature) -> Int) {
            text.metric(name, .counter, help)
            for (name, feature) in features { text.sample([("feature", name)], value(feature)) }
        }
        func plain(_ name: String, _ kind: PrometheusText.Kind, _ help: String, _ value: Int) {
            text.metric(name, kind, help)
            text.sample([], value)
        }

        plain("larder_events_total", .counter, "Events.", Int(clamping: events))
        plain("larder_events_dropped", .gauge, "Events that current listeners have missed.", eventsDropped)
        plain("larder_recorder_failures_total", .counter, "Events that could not be written.", recorderFailures)

        text.metric("larder_reads_total", .counter, "Reads of a tier, by result.")
        for (name, feature) in features {
            for (tier, reads) in feature.reads.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                let labels = [("feature", name), ("tier", tier.rawValue)]
                text.sample(labels + [("result", "hit")], reads.hits)
                text.sample(labels + [("result", "miss")], reads.misses)
            }
        }
        perFeature("larder_merged_requests_total", "Requests that joined one in flight.", \.merged)
        perFeature("larder_revalidations_total", "Replies that confirmed a stored value.", \.revalidations)
        perFeature("larder_saved_bytes_total", "Bytes that confirmations did not transfer.", \.bytesSaved)
        perFeature("larder_retries_total", "Retries of requests.", \.retries)
        perFeature("larder_gates_rejected_total", "Values that a gate rejected.", \.gatesRejected)
        perFeature("larder_requests_failed_total", "Exchanges without a reply or with a 5xx.", \.requestsFailed)
        perFeature(
            "larder_compression_saved_bytes_total",
            "Bytes that compressed replies had less than decoded.",
            \.bytesSavedByCompression
        )
        perFeature("larder_sent_bytes_total", "Bytes of content sent.", \.bytesSent)
        perFeature("larder_changes_applied_total", "Changes of the server applied.", \.changesApplied)
        text.metric("larder_source_bytes_total", .counter, "Bytes by source.")
        for (tier, bytes) in bytesBySource.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            text.sample([("source", tier.rawValue)], bytes)
        }
        text.metric("larder_request_seconds", .histogram, "Durations of exchanges.")
        for (name, feature) in features where feature.requests.count > 0 {
            text.histogram([("feature", name)], feature.requests)
        }
        text.metric("larder_first_content_seconds", .histogram, "Times until the first content.")
        for (name, feature) in features {
            for (tier, times) in feature.firstContentByTier.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                text.histogram([("feature", name), ("tier", tier.rawValue)], times)
            }
        }
        text.metric("larder_image_seconds", .histogram, "Durations of the stages of images.")
        for (use, stages) in [("wanted", images), ("prefetch", prefetchedImages)] {
            for (stage, histogram) in stages.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                text.histogram([("stage", stage.rawValue), ("use", use)], histogram)
            }
        }
        text.metric("larder_responses_total", .counter, "Replies by status.")
        for (status, count) in statuses.sorted(by: { $0.key < $1.key }) { text.sample([("status", status)], count) }
        text.metric("larder_request_failures_total", .counter, "Exchanges without a reply.")
        for (code, count) in failures.sorted(by: { $0.key < $1.key }) { text.sample([("code", code)], count) }
        text.metric("larder_evictions_total", .counter, "Entries evicted from a tier.")
        for (tier, reasons) in evictions.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            for (reason, evictions) in reasons.sorted(by: { $0.key < $1.key }) {
                text.sample([("tier", tier.rawValue), ("reason", reason)], evictions.count)
            }
        }
        if let outboxDepth { plain("larder_outbox_depth", .gauge, "Operations in the outbox.", outboxDepth) }
        text.metric("larder_outbox_total", .counter, "Steps of outbox operations.")
        for (change, count) in outbox.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            text.sample([("change", change.rawValue)], count)
        }
        addLabelled(to: &text)
        if let memoryLevel {
            plain("larder_memory_level", .gauge, "0 normal, 1 warning, 2 critical.", memoryLevel.rawValue)
        }
        plain("larder_memory_freed_bytes_total", .counter, "Bytes freed by the memory guard.", memoryFreed)
        plain("larder_loads_cancelled_total", .counter, "Loads cancelled by the memory guard.", loadsCancelled)
        if let networkLevel {
            plain("larder_network_level", .gauge, "0 offline, 1 constrained, 2 good.", networkLevel.rawValue)
        }
        plain("larder_stores_recovered_total", .counter, "Damaged stores that were rebuilt.", storesRecovered)
        return text.text
    }

    /// The labels, the exchanges of each version, and the figures of memory warnings. The session is a label of one metric only, so that a
    /// new session does not begin new series of all others.
    private func addLabelled(to text: inout PrometheusText) {
        text.metric("larder_info", .gauge, "The session and the version of the app.")
        text.sample([("session", labels.session), ("version", labels.appVersion)], 1)
        let versions = versions.sorted { $0.key < $1.key }
        text.metric("larder_version_requests_total", .counter, "Exchanges by version of the app.")
        for (name, version) in versions { text.sample([("version", name)], version.requests) }
        text.metric("larder_version_failures_total", .counter, "Failed exchanges by version of the app.")
        for (name, version) in versions {
            for (code, count) in version.failures.sorted(by: { $0.key < $1.key }) {
                text.sample([("version", name), ("code", code)], count)
            }
        }
        text.metric("larder_memory_warnings_total", .counter, "Rises of memory pressure.")
        text.sample([], memoryWarnings.count)
        text.metric("larder_memory_warning", .gauge, "What was held at the last rise of memory pressure.")
        let last = memoryWarnings.last
        for (name, value) in [("cost_bytes", last.cost), ("requests", last.requests), ("image_loads", last.loads)] {
            text.sample([("figure", name)], value)
        }
    }
}
