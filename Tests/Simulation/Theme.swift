/// What a run is about: it has few acts, of which each comes often, because a rare situation needs several of them.
enum Theme: String, Codable, CaseIterable, Sendable {
    case everything, unevenNetwork, damage, twoProcesses, rejections, power, clocks, taps, disk, history, manners,
        sessions, limits, accounts, pictures, overlaps, late, clockSteps, refreshes, conflicts, uploads

    /// Seeds in a row have all themes in turn, some of them twice.
    init(seed: UInt64) {
        let dealt = Self.allCases + [.everything, .pictures, .manners, .everything, .pictures]
        self = dealt[Int(seed % UInt64(dealt.count))]
    }

    /// The weights of which a run draws one.
    func weights(of act: Act) -> [Int] {
        guard self != .everything else { return act.isByPerson ? [0, 2, 6] : [0, 0, 1, 3] }
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
            [
                .dieWhileSending, .tapOften, .like, .writePost, .sendMessage, .linkUneven, .linkGood, .kill, .openApp,
                .sendPhoto,
            ]
        case .clockSteps:
            [.clockBackSlightly, .openProfile, .openBank, .openFeed, .pull, .trimMemory, .otherEdits, .background]
        case .refreshes:
            [
                .othersWriteMuch, .otherWrites, .otherDeletes, .otherEdits, .openFeed, .pull, .scroll, .writePost,
                .deletePost, .linkUneven, .linkRefused, .linkGood, .closeApp, .openApp, .sourceOffline,
            ]
        case .conflicts:
            [.editTogether, .writeData, .editProfile, .decide, .openApp, .linkUneven, .loseReplies, .noFaults, .pull]
        case .uploads:
            [
                .interruptPhoto, .sendPhoto, .writeData, .linkUneven, .linkGood, .linkCut, .linkRefused, .resets,
                .noFaults, .killSoon, .openApp, .openConversation, .sourceOffline,
            ]
        case .sessions:
            [
                .expireToken, .loseReplies, .resets, .malformed, .truncates, .kill, .openApp, .linkCut, .openProfile,
                .openBank, .noFaults, .sendMessage, .openMuch, .sendPhoto,
            ]
        }
    }
}
