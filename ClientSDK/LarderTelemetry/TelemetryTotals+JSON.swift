import LarderCoding
import LarderEvents
import LarderTime

extension TelemetryTotals.Histogram {
    /// The summary of a histogram: count, mean, extremes and percentiles, in nanoseconds.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("count")
        writer.integer(Int64(clamping: count))
        func member(_ name: StaticString, _ duration: Duration?) {
            guard let duration else { return }
            writer.key(name)
            writer.integer(duration.nanosecondsSaturating)
        }
        member("mean", mean)
        member("minimum", minimum)
        member("p50", percentile(0.5))
        member("p90", percentile(0.9))
        member("p99", percentile(0.99))
        member("maximum", maximum)
        writer.endObject()
    }
}

extension TelemetryTotals {
    /// The totals as a JSON object, with sorted names and durations in nanoseconds: equal totals are equal texts.
    public var json: String {
        var writer = JSONWriter(capacity: 4_096)
        writer.beginObject()
        writer.key("events")
        writer.integer(Int64(clamping: events))
        writer.integers([
            ("eventsDropped", eventsDropped), ("recorderFailures", recorderFailures),
            ("memoryChanges", memoryChanges), ("memoryFreed", memoryFreed), ("loadsCancelled", loadsCancelled),
            ("networkChanges", networkChanges), ("storesRecovered", storesRecovered),
        ])
        labels.write(to: &writer)
        if let memoryLevel {
            writer.key("memoryLevel")
            writer.string(memoryLevel.description)
        }
        if let networkLevel {
            writer.key("networkLevel")
            writer.string(networkLevel.description)
        }
        if let outboxDepth { writer.integers([("outboxDepth", outboxDepth)]) }
        writer.counts("outbox", outbox.map { ($0.key.rawValue, $0.value) })
        writer.counts("bytesBySource", bytesBySource.map { ($0.key.rawValue, $0.value) })
        writer.counts("statuses", statuses.map { ($0.key, $0.value) })
        writer.counts("failures", failures.map { ($0.key, $0.value) })
        writer.key("evictions")
        writer.beginObject()
        for (tier, reasons) in evictions.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            writer.key(tier.rawValue)
            writer.beginObject()
            for (reason, evictions) in reasons.sorted(by: { $0.key < $1.key }) {
                writer.key(reason)
                writer.beginObject()
                writer.integers([("count", evictions.count), ("bytes", evictions.bytes)])
                writer.endObject()
            }
            writer.endObject()
        }
        writer.endObject()
        writer.histograms("images", images.map { ($0.key.rawValue, $0.value) })
        writer.histograms("prefetchedImages", prefetchedImages.map { ($0.key.rawValue, $0.value) })
        writer.key("memoryWarnings")
        writer.beginObject()
        writer.integers([("count", memoryWarnings.count)])
        for (name, figures) in [("last" as StaticString, memoryWarnings.last), ("maximum", memoryWarnings.maximum)] {
            writer.key(name)
            writer.beginObject()
            writer.integers([("cost", figures.cost), ("requests", figures.requests), ("loads", figures.loads)])
            writer.endObject()
        }
        writer.endObject()
        writer.key("versions")
        writer.beginObject()
        for (name, version) in versions.sorted(by: { $0.key < $1.key }) {
            writer.key(name)
            writer.beginObject()
            writer.integers([("requests", version.requests), ("requestsFailed", version.requestsFailed)])
            writer.counts("failures", version.failures.map { ($0.key, $0.value) })
            writer.endObject()
        }
        writer.endObject()
        writer.key("all")
        all.write(to: &writer)
        writer.key("features")
        writer.beginObject()
        for (name, feature) in features.sorted(by: { $0.key < $1.key }) {
            writer.key(name)
            feature.write(to: &writer)
        }
        writer.endObject()
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension TelemetryTotals.Feature {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("reads")
        writer.beginObject()
        for (tier, reads) in reads.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            writer.key(tier.rawValue)
            writer.beginObject()
            writer.integers([("hits", reads.hits), ("misses", reads.misses), ("bytes", reads.bytes)])
            writer.key("hitRate")
            writer.number(reads.hitRate)
            writer.endObject()
        }
        writer.endObject()
        writer.integers([
            ("merged", merged), ("revalidations", revalidations), ("bytesSaved", bytesSaved), ("retries", retries),
            ("gatesRejected", gatesRejected), ("requestsFailed", requestsFailed), ("bytesReceived", bytesReceived),
            ("bytesSent", bytesSent), ("bytesSavedByCompression", bytesSavedByCompression),
            ("changesApplied", changesApplied),
        ])
        if let changesRemaining { writer.integers([("changesRemaining", changesRemaining)]) }
        writer.key("requests")
        requests.write(to: &writer)
        writer.key("firstContent")
        firstContent.write(to: &writer)
        if let firstContentHitRate {
            writer.key("firstContentHitRate")
            writer.number(firstContentHitRate)
        }
        writer.histograms("firstContentByTier", firstContentByTier.map { ($0.key.rawValue, $0.value) })
        writer.endObject()
    }
}

extension JSONWriter {
    fileprivate mutating func integers(_ members: [(StaticString, Int)]) {
        for (name, value) in members {
            key(name)
            integer(Int64(value))
        }
    }

    fileprivate mutating func histograms(_ name: StaticString, _ histograms: [(String, TelemetryTotals.Histogram)]) {
        key(name)
        beginObject()
        for (name, histogram) in histograms.sorted(by: { $0.0 < $1.0 }) {
            key(name)
            histogram.write(to: &self)
        }
        endObject()
    }

    fileprivate mutating func counts(_ name: StaticString, _ counts: [(String, Int)]) {
        key(name)
        beginObject()
        for (name, count) in counts.sorted(by: { $0.0 < $1.0 }) {
            key(name)
            integer(Int64(count))
        }
        endObject()
    }
}
