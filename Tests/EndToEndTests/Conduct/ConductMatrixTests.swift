import Larder
import LarderResources
import LarderServer
import LarderTime
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Conduct and convergence under every journey, end to end", .oneMinute)
struct ConductMatrixTests {
    @Test(arguments: Journey.allCases)
    func `a person uses the app during a journey, and after it the client has converged`(_ journey: Journey)
        async throws
    {
        let visit = try Visit(seed: 11)
        let person = try await Person.arrive(visit)
        let faults = try visit.world.set(journey)
        try await person.restart(live: LiveSync.Kind.allCases)
        try await person.use(rounds: 2)
        for fault in faults { visit.world.removeFault(fault.id) }
        let name = "journey \(journey.rawValue), seed \(visit.seed)"
        try await person.expectToCatchUp(name)
        try await person.expectConvergence(name, mayHaveStaleItems: true)
        await person.expectGoodConduct(journey.rawValue, name, except: Self.exceptions(journey))
        person.client.close()
    }

    /// The rules that cannot judge a client in a journey.
    private static func exceptions(_ journey: Journey) -> Set<ConductReport.Rule> {
        switch journey {
        // What has failed in an outage is sent again when the network returns, so the waits have the length of the outage.
        case .lift, .tunnel, .train, .flapping, .offline, .captivePortal: [.retriedWithoutJitter]
        default: []
        }
    }
}
