import Foundation
import SimulationRuntime

@main enum Simulate {
    static func main() {
        let options: Options
        do { options = try Options(CommandLine.arguments.dropFirst()) } catch {
            print("simulate: \(error)\n\(Options.usage)")
            exit(2)
        }
        sim_install()
        let hasTLS = sim_seed_tls()
        if !hasTLS { print("All runs use http: the system has no OpenSSL, so that https cannot be simulated.") }
        let began = sim_real_clock()
        var outcome = Outcome()
        // Two worlds: one of them has pictures. A process has one server.
        for hasPictures in [false, true] where !options.endsAtFailure || outcome.failed.isEmpty {
            let entries = options.plans.enumerated().map { (number: $0.offset, plan: $0.element) }
                .filter { ($0.plan.theme == .pictures) == hasPictures }
            let jobs = min(options.jobs, entries.count)
            let workers = (0..<jobs).map { worker in
                start(options, hasTLS, stride(from: worker, to: entries.count, by: jobs).map { entries[$0] })
            }
            for worker in workers {
                let status = sim_wait(worker.process)
                guard status == 0, let part = Outcome(contentsOf: worker.path) else { exit(max(status, 2)) }
                try? FileManager.default.removeItem(atPath: worker.path)
                outcome.add(part)
            }
        }
        let seconds = Double(sim_real_clock() - began) / 1e9
        exit(outcome.summarize(options.plans, seconds: seconds) ? 0 : 1)
    }

    /// Starts a process that runs plans, all with pictures or all without.
    private static func start(
        _ options: Options,
        _ hasTLS: Bool,
        _ entries: [Runner.Entry]
    ) -> (process: Int32, path: String) {
        let path = "\(Runner.directory)/larder-simulation-\(getpid())-\(entries[0].number).outcome"
        let process = sim_fork()
        if process != 0 { return (process, path) }
        sim_seed(1)
        var pictures: PictureSet?
        do {
            if entries[0].plan.theme == .pictures {
                pictures = try PictureSet(directory: "\(Runner.directory)/larder-simulation-\(getpid())-pictures")
            }
            try Runner(options, try Stage(pictures: pictures, isSecure: hasTLS)).run(entries).write(to: path)
        } catch {
            print("simulate: the backend does not start, or its report cannot be written: \(error)")
            sim_exit(2)
        }
        pictures?.remove()
        sim_exit(0)
    }
}
