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
        let began = sim_real_clock()
        var outcome = Outcome()
        // Two worlds: one of them has pictures. A process has one server.
        for hasPictures in [false, true] where !options.endsAtFailure || outcome.failed.isEmpty {
            let seeds = options.seeds.filter { (Theme(seed: $0) == .pictures) == hasPictures }
            let jobs = min(options.jobs, seeds.count)
            let workers = (0..<jobs).map { worker in
                var part = options
                part.seeds = stride(from: worker, to: seeds.count, by: jobs).map { seeds[$0] }
                return start(part)
            }
            for worker in workers {
                let status = sim_wait(worker.process)
                guard status == 0, let part = Outcome(contentsOf: worker.path) else { exit(max(status, 2)) }
                try? FileManager.default.removeItem(atPath: worker.path)
                outcome.add(part)
            }
        }
        let seconds = Double(sim_real_clock() - began) / 1e9
        exit(outcome.summarize(options.seeds, seconds: seconds) ? 0 : 1)
    }

    /// Starts a process that runs seeds, all with pictures or all without.
    private static func start(_ options: Options) -> (process: Int32, path: String) {
        let path = "\(Runner.directory)/larder-simulation-\(getpid())-\(options.seeds[0]).outcome"
        let process = sim_fork()
        if process != 0 { return (process, path) }
        sim_seed(1)
        var pictures: PictureSet?
        do {
            if Theme(seed: options.seeds[0]) == .pictures {
                pictures = try PictureSet(directory: "\(Runner.directory)/larder-simulation-\(getpid())-pictures")
            }
            try Runner(options, try Stage(pictures: pictures)).run().write(to: path)
        } catch {
            print("simulate: the backend does not start, or its report cannot be written: \(error)")
            sim_exit(2)
        }
        pictures?.remove()
        sim_exit(0)
    }
}
