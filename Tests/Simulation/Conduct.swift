import LarderServer

extension ConductReport.Rule {
    /// Whether a rule can judge a run: some acts break it without a fault of the client.
    func holds(in simulation: Simulation) -> Bool {
        switch self {
        case .keyMissing, .keyChanged: true
        // A client that has not received a reply, or that has lost its memory or its disk, cannot know of it.
        case .retriedTooSoon, .retriedWithoutJitter, .downloadedTwice, .refetchedFresh, .duplicateInFlight,
            .polledBesideLive:
            simulation.plan.swarm.isCalm
        }
    }
}

extension ConductReport.Finding {
    /// Whether it is no fault: a list in pages is read with two sizes of pages and has no validator after a change to one of its items,
    /// a person's own refresh does not join a request that began before it, and a long poll that was given up may still be in flight at
    /// the server. Another tap or post has the target of the one that the server has asked to wait with a 500.
    var isExcused: Bool {
        switch rule {
        case .downloadedTwice, .refetchedFresh: detail.hasPrefix("/v1/feed") || detail.contains("/messages?")
        case .duplicateInFlight: detail.hasPrefix("/v1/changes?") || detail.hasPrefix("/v1/feed")
        case .retriedTooSoon: detail.hasPrefix("/v1/likes:") || detail.hasPrefix("/v1/posts:")
        default: false
        }
    }
}

extension Act {
    /// What a calm run does not have.
    static let disturbing = ending.union(cutting).union(forgetting)

    /// The acts that end a process, or what it knows.
    private static let ending: Set<Act> = [
        .kill, .killSoon, .tearWrite, .closeApp, .losePower, .openApp, .signOut, .expireToken, .changeAndDie,
        .payAndLosePower, .expireAndDie, .clockBackBriefly, .damageStore,
    ]
    /// The acts after which a reply that the server has sent may not arrive.
    private static let cutting: Set<Act> = [
        .linkSlow, .linkLossy, .linkCut, .linkHalfOpen, .linkBlackHole, .linkChanged, .loseReplies, .resets, .silence,
        .truncates, .malformed, .background, .journey, .sourceOffline, .linkUneven, .postVanishes,
        .openMuch,
    ]
    /// The acts after which a value that was received may not be used.
    private static let forgetting: Set<Act> = [
        .trimMemory, .diskFails, .diskFull, .clockForward, .clockBack, .feedFault, .wrongValidators, .lag, .dialect,
        .schemaDrift, .dateSkew, .clockDrift, .limited,
    ]
}
