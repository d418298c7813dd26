import Larder

extension TourScene {
    /// What happens to a picture between a request and the screen.
    static let path = TourFlow(
        title: "The path of a picture",
        steps: [
            .init(text: "A row asks for a picture (ListPrefetch)"),
            .init(text: "Pixels in memory, and fresh?", yes: "Shown at once"),
            .init(text: "Already being loaded?", yes: "Waits for the same download and decode"),
            .init(text: "A prefetch while prefetching is paused?", yes: "Waits; not even the disk is read"),
            .init(text: "No fresh file on disk?", yes: "Downloaded or confirmed (304), then read"),
            .init(text: "The file is read"),
            .init(text: "Left the screen meanwhile?", yes: "Cancelled, if nobody else waits"),
            .init(text: "Decoded; when idle while a person scrolls"),
            .init(text: "Downsampled while decoding"),
            .init(text: "Stored in memory, shown to all that wait"),
        ]
    )

    /// What a feed shows first.
    static let coldStart = TourFlow(
        title: "A cold start",
        steps: [
            .init(text: "The feed opens in a new process"),
            .init(text: "Posts on disk are shown, with their age"),
            .init(text: "Are they fresh?", yes: "No request"),
            .init(text: "Offline?", yes: "They stay; a request follows the return"),
            .init(text: "The server is asked, with the validator"),
            .init(text: "Unchanged (304)?", yes: "Only the times are stored"),
            .init(text: "New posts are stored, then shown"),
        ]
    )

    /// What the memory guard does.
    static let warning = TourFlow(
        title: "Memory is short",
        steps: [
            .init(text: "The system reports pressure"),
            .init(text: "Bytes, requests and loads are counted"),
            .init(text: "The warning is reported with these figures"),
            .init(text: "Prefetching stops, fewer loads run at once"),
            .init(text: "Loads of pictures out of view are cancelled"),
            .init(text: "Half leave memory; all if it is critical"),
            .init(text: "Quiet for five seconds?", yes: "Limits grow in steps, prefetching last"),
        ]
    )

    /// What the memory guard allows while memory is short and afterwards.
    func pressure() -> TourChapter {
        var chapter = begin(
            .pressure,
            "The system reports after five seconds that memory is short, after ten that it is critically short, and after fifteen that it is not. "
                + "What may caches hold, how many loads run, and when is all of it as before?"
        )
        let clock = ManualClock()
        let source = MemoryGuard.ManualSource()
        let memory = MemoryGuard(source: source, clock: clock)
        defer { memory.close() }
        let reports = [5: MemoryLevel.warning, 10: .critical, 15: .normal]
        var changes: [(second: Int, limits: MemoryLimits)] = []
        for second in 0...300 {
            if let level = reports[second] { source.signal(level) }
            memory.tick()
            if changes.last?.limits != memory.limits { changes.append((second, memory.limits)) }
            clock.advance(by: .seconds(1))
        }
        let table = TourTable(
            title: "The limits of the memory guard",
            columns: ["after", "the system says", "caches", "loads at once", "running loads", "prefetching"],
            rows: changes.map { second, limits in
                [
                    .duration(.seconds(second)), .text("\(limits.level)"), .text(Self.percent(limits.cacheShare)),
                    .text(Self.percent(limits.concurrencyFactor)), .text(limits.cancelsLoads ? "cancelled" : "go on"),
                    .text(limits.allowsPrefetch ? "on" : "off"),
                ]
            }
        )
        chapter.exhibits = [.table(table), .flow(Self.coldStart), .flow(Self.path), .flow(Self.warning)]
        let least = changes.map(\.limits.cacheShare).min() ?? 1
        chapter.answer =
            "Work stops first and at once, then caches shrink, to \(Self.percent(least)) of their memory at worst. All of it is as before "
            + "\((changes.last?.second ?? 0) - 15) s after the last report, prefetching last. Caches that are only cleared are full again with what was "
            + "being loaded: Benchmarks/images has the comparison."
        return chapter
    }
}
