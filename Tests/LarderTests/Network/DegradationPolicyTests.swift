import Larder
import TestSupport
import Testing

@Suite("Degradation policy", .oneMinute)
struct DegradationPolicyTests {
    @Test func `each level has its conduct, and a user's own takes its place`() {
        var policy = DegradationPolicy.standard
        #expect(policy[.good] == DegradationPolicy.Conduct())
        #expect(!policy[.constrained].allowsPrefetch && policy[.constrained].allowsRefresh)
        #expect(!policy[.offline].allowsRefresh && !policy[.offline].allowsPaging && !policy[.offline].sendsOutbox)
        policy.constrained.allowsPrefetch = true
        policy.constrained.renditionFactor = 0.25
        #expect(policy[.constrained].allowsPrefetch && policy[.constrained].pixels(400) == 100)
        for level in NetworkLevel.allCases { #expect(DegradationPolicy.none[level] == DegradationPolicy.Conduct()) }
    }

    @Test func `constrained makes lifetimes longer for those classes that allow it`() {
        let conduct = DegradationPolicy.standard[.constrained]
        #expect(conduct.lifetime(.seconds(60), class: "interactive") == .seconds(120))
        #expect(conduct.lifetime(.seconds(60), class: "critical") == .seconds(60))
        #expect(conduct.batch(50) == 100 && conduct.concurrency(6) == 3)
    }

    @Test(arguments: [-1, 0, .nan, .infinity, 1e300] as [Double])
    func `absurd factors leave at least one, and no trap`(_ factor: Double) {
        let conduct = DegradationPolicy.Conduct(
            renditionFactor: factor,
            concurrencyFactor: factor,
            batchFactor: factor,
            lifetimeFactors: ["x": factor]
        )
        #expect(conduct.concurrency(4) >= 1 && conduct.batch(4) >= 1 && conduct.pixels(100) >= 1)
        #expect(conduct.pixels(100) <= 100)
        #expect(conduct.lifetime(.seconds(5), class: "x") >= .zero)
    }
}
