import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Metric;
import org.apache.flink.metrics.MetricConfig;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.reporter.MetricReporter;
import org.apache.flink.metrics.reporter.MetricReporterFactory;
import org.apache.flink.metrics.reporter.Scheduled;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs statements on Flink's embedded cluster: Job KEY=VALUE... -- STATEMENT... The keys are Flink's settings.
 *
 * <p>The last statement is the job, an INSERT. In the end a line of JSON says how long its rows took.
 */
public final class Job {
  public static void main(String[] args) {
    int status = 0;
    try {
      run(List.of(args));
    } catch (Throwable e) {
      e.printStackTrace();
      status = 1;
    }
    System.out.flush();
    System.exit(status); // threads of the cluster may live on
  }

  private static void run(List<String> args) throws Exception {
    int split = args.indexOf("--");
    Configuration settings = new Configuration();
    for (String s : args.subList(0, split)) {
      int at = s.indexOf('=');
      settings.setString(s.substring(0, at), s.substring(at + 1));
    }
    settings.setString("metrics.reporter.clock.factory.class", Clock.class.getName());
    settings.setString("metrics.reporter.clock.interval", "10 ms");
    TableEnvironment tables =
        TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());

    List<String> statements = args.subList(split + 1, args.size());
    for (String s : statements.subList(0, statements.size() - 1)) {
      tables.executeSql(s).await();
    }
    TableResult result = tables.executeSql(statements.get(statements.size() - 1));
    result.await();
    double net = result.getJobClient().get().getJobExecutionResult().get().getNetRuntime() / 1e3;
    System.out.printf(Locale.ROOT, "{\"seconds\":%.3f,\"job_seconds\":%.3f}%n", Clock.seconds(), net);
  }

  /**
   * Looks at the operators' counts of records every 10 ms: the time of the rows is from the first look that saw a record to
   * the last that saw a count change. Flink's own net runtime also has the making of tasks in it, and the wait for the
   * checkpoint after the last row.
   */
  public static final class Clock implements MetricReporterFactory, MetricReporter, Scheduled {
    private static final List<Counter> COUNTS = new CopyOnWriteArrayList<>();
    private static long seen;
    private static long first;
    private static long last;

    @Override
    public void report() {
      look();
    }

    private static synchronized void look() {
      long sum = 0;
      for (Counter c : COUNTS) {
        sum += c.getCount();
      }
      if (sum == seen) {
        return;
      }
      last = System.nanoTime();
      if (seen == 0) {
        first = last;
      }
      seen = sum;
    }

    /** How long the rows took: 0 when there was none. */
    static synchronized double seconds() {
      return (last - first) / 1e9;
    }

    @Override
    public void notifyOfAddedMetric(Metric metric, String name, MetricGroup group) {
      if (metric instanceof Counter && (name.equals("numRecordsIn") || name.equals("numRecordsOut"))) {
        COUNTS.add((Counter) metric);
      }
    }

    @Override
    public void notifyOfRemovedMetric(Metric metric, String name, MetricGroup group) {
      // Its count stays in the sum: a task that ends changes nothing.
    }

    @Override
    public MetricReporter createMetricReporter(Properties properties) {
      return this;
    }

    @Override
    public void open(MetricConfig config) {}

    @Override
    public void close() {}
  }
}
