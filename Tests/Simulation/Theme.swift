/// What a run from seed 3000 on is about: it has few acts, of which each comes often, because a rare situation needs several of them.
enum Theme: Int, CaseIterable, Sendable {
    case everything, unevenNetwork, damage, twoProcesses, rejections, power, clocks, taps, disk, history, manners,
        sessions, limits, accounts, pictures, overlaps, late, clockSteps, refreshes

    init?(seed: UInt64) {
        guard seed >= 3_000 else { return nil }
        // The last themes were added later: earlier seeds keep theirs.
        guard seed < Plan.rareSeeds else {
            let themes: [Self] = [.overlaps, .late, .clockSteps, .refreshes]
            self = themes[Int(seed % 4)]
            return
        }
        guard seed < Plan.pictureSeeds else {
            self = .pictures
            return
        }
        let count = UInt64(seed < Plan.newestSeeds ? Self.limits.rawValue : Self.pictures.rawValue)
        self = Self(rawValue: Int(seed % count)) ?? .everything
    }

    /// The weights of which a run draws one; nil: the usual ones.
    func weights(of act: Act) -> [Int]? {
        guard self != .everything else { return nil }
        return acts.contains(act) ? [3, 6] : [0, 0, 0, 0, 0, 1]
    }

    private var acts: Set<Act> {
        switch self {
        case .everything: []
        case .unevenNetwork:
            [
                .linkUneven, .openFeed, .pull, .openConversation, .openTasks, .otherWrites, .otherLikes, .otherEdits,
                .otherDeletes, .sourceOffline, .editTask, .addTask, .deletePost, .writePost, .background, .tapOften,
            ]
        case .damage: [.damageStore, .linkRefused, .linkGood, .sendMessage, .writePost, .like, .writeAndChange, .kill]
        case .twoProcesses:
            [
                .sendMany, .writeAndChange, .rejects, .decide, .linkUneven, .killSoon, .openApp, .pull, .otherEdits,
                .otherWrites, .editProfile, .trimMemory, .expireToken, .openConversation,
            ]
        case .rejections:
            [.rejects, .sendMany, .writeAndChange, .decide, .editMessage, .linkRefused, .linkGood, .kill, .openApp]
        case .power:
            [
                .payAndLosePower, .losePower, .openApp, .sendMessage, .writePost, .tapOften, .openBank,
                .openConversation, .pull,
            ]
        case .clocks:
            [
                .clockBackBriefly, .clockDrift, .openProfile, .openBank, .openFeed, .closeApp, .openApp, .kill,
                .linkRefused, .linkGood,
            ]
        case .taps:
            [.tapOften, .changeAndDie, .loseReplies, .busy, .resets, .linkCut, .noFaults, .like, .likeTwice]
        case .disk:
            [
                .diskFails, .diskFull, .diskHeals, .trimMemory, .pull, .openFeed, .otherEdits, .otherLikes,
                .editProfile,
                .openProfile, .openConversation, .otherWrites,
            ]
        case .history:
            [
                .feedFault, .expireAndDie, .postVanishes, .othersWriteMuch, .otherLikes, .otherEdits, .pull, .openFeed,
                .scroll, .linkRefused, .linkGood, .otherWrites, .otherDeletes,
            ]
        case .manners:
            [
                .busy, .outage, .openTwice, .slow, .openProfile, .openBank, .pull, .sendMessage, .like,
                .openTasks, .otherEdits, .noFaults,
            ]
        case .limits:
            [
                .linkRefused, .linkGood, .sendMany, .writePost, .addTask, .like, .tapOften, .openFeed, .scroll, .pull,
                .openMuch,
                .openConversation, .openProfile, .othersWriteMuch, .otherEdits, .kill, .openApp,
            ]
        case .accounts:
            [
                .changeAccount, .signOut, .openFeed, .openBank, .openConversation, .sendMany, .writePost, .pull,
                .addTask,
                .linkRefused, .linkGood, .linkUneven, .kill, .openApp, .background,
            ]
        case .pictures:
            [
                .showPictures, .prefetchPictures, .cancelPictures, .pressPictures, .trimPictures, .damagePictures,
                .changeAccount, .kill, .killSoon, .losePower, .openApp, .closeApp, .diskFails, .diskFull, .diskHeals,
                .linkUneven,
                .linkCut, .linkGood, .truncates, .resets, .busy, .slow, .wrongValidators, .noFaults, .openFeed,
                .sourceOffline,
            ]
        case .overlaps: [.changeWhileReading, .payWhileReading, .openMuch, .openTasks, .openBank, .pull, .addTask]
        case .late:
            [.dieWhileSending, .tapOften, .like, .writePost, .sendMessage, .linkUneven, .linkGood, .kill, .openApp]
        case .clockSteps:
            [.clockBackSlightly, .openProfile, .openBank, .openFeed, .pull, .trimMemory, .otherEdits, .background]
        case .refreshes:
            [
                .othersWriteMuch, .otherWrites, .otherDeletes, .otherEdits, .openFeed, .pull, .scroll, .writePost,
                .deletePost, .linkUneven, .linkRefused, .linkGood, .closeApp, .openApp, .sourceOffline,
            ]
        case .sessions:
            [
                .expireToken, .loseReplies, .resets, .malformed, .truncates, .kill, .openApp, .linkCut, .openProfile,
                .openBank, .noFaults, .sendMessage, .openMuch,
            ]
        }
    }
}
