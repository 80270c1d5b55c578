// A REST catalog: Iceberg's own handlers and its JDBC catalog, behind the HTTP server of the JDK.
// Arguments: the folder of the catalog, and the token that requests must have.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

public class RestCatalogServer {
  private static final Map<Class<?>, Integer> STATUS = Map.of(
      NoSuchTableException.class, 404, NoSuchNamespaceException.class, 404, AlreadyExistsException.class, 409,
      CommitFailedException.class, 409, ValidationException.class, 400, NotAuthorizedException.class, 401);
  private final JdbcCatalog catalog = new JdbcCatalog();
  private final ObjectMapper json = new ObjectMapper();
  private final String token;

  RestCatalogServer(String folder, String token) {
    this.token = token;
    catalog.setConf(new Configuration());
    catalog.initialize("rest", Map.of(
        "uri", "jdbc:sqlite:" + folder + "/catalog.db", "warehouse", "file:" + folder, "clients", "1"));
    json.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
    json.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    json.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy());
    RESTSerializers.registerAll(json);
  }

  public static void main(String[] arguments) throws Exception {
    RestCatalogServer server = new RestCatalogServer(arguments[0], arguments[1]);
    HttpServer http = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    http.createContext("/", server::serve);
    http.setExecutor(Executors.newFixedThreadPool(8));
    http.start();
    System.out.println(http.getAddress().getPort());
  }

  private void serve(HttpExchange exchange) {
    int status = 200;
    byte[] body;
    try {
      Object answer = answer(exchange);
      status = answer == null ? 204 : 200;
      body = answer == null ? new byte[0] : json.writeValueAsBytes(answer);
    } catch (Exception error) {
      status = STATUS.getOrDefault(error.getClass(), 500);
      body = write(ErrorResponse.builder().responseCode(status).withType(error.getClass().getSimpleName())
          .withMessage(String.valueOf(error.getMessage())).build());
    }
    try (exchange) {
      boolean isEmpty = body.length == 0 || exchange.getRequestMethod().equals("HEAD");
      exchange.getResponseHeaders().set("Content-Type", "application/json");
      exchange.sendResponseHeaders(status, isEmpty ? -1 : body.length);
      if (!isEmpty) {
        exchange.getResponseBody().write(body);
      }
    } catch (Exception gone) {
      System.err.println(gone);
    }
  }

  private byte[] write(Object value) {
    try {
      return json.writeValueAsBytes(value);
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private Object answer(HttpExchange exchange) throws Exception {
    String[] path = exchange.getRequestURI().getPath().substring(1).split("/");
    byte[] body = exchange.getRequestBody().readAllBytes();
    String method = exchange.getRequestMethod();
    if (path[1].equals("oauth")) {
      return tokenFor(new String(body, StandardCharsets.UTF_8));
    }
    if (!("Bearer " + token).equals(exchange.getRequestHeaders().getFirst("Authorization"))) {
      throw new NotAuthorizedException("the token is not accepted");
    }
    if (path[1].equals("config")) {
      return Map.of("defaults", Map.of(), "overrides", Map.of());
    }
    if (path.length == 2) {
      return method.equals("POST")
          ? CatalogHandlers.createNamespace(catalog, json.readValue(body, CreateNamespaceRequest.class))
          : CatalogHandlers.listNamespaces(catalog, Namespace.empty());
    }
    Namespace namespace = Namespace.of(path[2]);
    if (path.length == 3) {
      return CatalogHandlers.loadNamespace(catalog, namespace);
    }
    if (path.length == 4) {
      return method.equals("POST")
          ? CatalogHandlers.createTable(catalog, namespace, json.readValue(body, CreateTableRequest.class))
          : CatalogHandlers.listTables(catalog, namespace);
    }
    TableIdentifier name = TableIdentifier.of(namespace, path[4]);
    return method.equals("POST")
        ? CatalogHandlers.updateTable(catalog, name, json.readValue(body, UpdateTableRequest.class))
        : CatalogHandlers.loadTable(catalog, name, SnapshotMode.ALL);
  }

  private Object tokenFor(String form) {
    String plain = URLDecoder.decode(form, StandardCharsets.UTF_8);
    if (!plain.contains("client_id=loader") || !plain.contains("client_secret=" + token)) {
      throw new NotAuthorizedException("the client is not known");
    }
    return Map.of("access_token", token, "token_type", "bearer",
        "issued_token_type", "urn:ietf:params:oauth:token-type:access_token");
  }
}
