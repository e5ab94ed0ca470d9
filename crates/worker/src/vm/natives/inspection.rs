//! Natives that inspect values without running user code: no getter and no proxy trap is called.

use super::super::inputs;
use super::throw;
use heapstead_wire::Gap;

pub fn class_of<'s>(scope: &mut v8::PinScope<'s, '_>, arguments: &v8::FunctionCallbackArguments<'s>, answer: &mut v8::ReturnValue<'_>) {
    if let Some(name) = v8::String::new(scope, class_name(arguments.get(0))) {
        answer.set(name.into());
    }
}

type Test = fn(&v8::Value) -> bool;

fn class_name(value: v8::Local<'_, v8::Value>) -> &'static str {
    let classes: [(Test, &'static str); 26] = [
        (v8::Value::is_proxy, "Proxy"),
        (v8::Value::is_array, "Array"),
        (v8::Value::is_async_function, "AsyncFunction"),
        (v8::Value::is_generator_function, "GeneratorFunction"),
        (v8::Value::is_function, "Function"),
        (v8::Value::is_native_error, "Error"),
        (v8::Value::is_map, "Map"),
        (v8::Value::is_set, "Set"),
        (v8::Value::is_promise, "Promise"),
        (v8::Value::is_date, "Date"),
        (v8::Value::is_reg_exp, "RegExp"),
        (v8::Value::is_typed_array, "TypedArray"),
        (v8::Value::is_array_buffer, "ArrayBuffer"),
        (v8::Value::is_data_view, "DataView"),
        (v8::Value::is_shared_array_buffer, "SharedArrayBuffer"),
        (v8::Value::is_weak_map, "WeakMap"),
        (v8::Value::is_weak_set, "WeakSet"),
        (v8::Value::is_map_iterator, "MapIterator"),
        (v8::Value::is_set_iterator, "SetIterator"),
        (v8::Value::is_generator_object, "Generator"),
        (v8::Value::is_arguments_object, "Arguments"),
        (v8::Value::is_number_object, "Number"),
        (v8::Value::is_string_object, "String"),
        (v8::Value::is_boolean_object, "Boolean"),
        (v8::Value::is_symbol_object, "Symbol"),
        (v8::Value::is_big_int_object, "BigInt"),
    ];
    match classes.iter().find(|(is, _)| is(&value)) {
        // V8's tests for generator functions and for async functions are both true for async generator functions.
        Some((_, "AsyncFunction")) if value.is_generator_function() => "AsyncGeneratorFunction",
        Some((_, name)) => name,
        None if value.is_module_namespace_object() => "ModuleNamespace",
        None if value.is_external() => "External",
        None => "Object",
    }
}

pub fn proxy_details<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let Ok(proxy) = v8::Local::<v8::Proxy>::try_from(arguments.get(0)) else { return };
    let details = [proxy.get_target(scope), proxy.get_handler(scope)];
    answer.set(v8::Array::new_with_elements(scope, &details).into());
}

pub fn promise_details<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let Ok(promise) = v8::Local::<v8::Promise>::try_from(arguments.get(0)) else { return };
    let (state, result) = match promise.state() {
        v8::PromiseState::Pending => (0, v8::undefined(scope).into()),
        v8::PromiseState::Fulfilled => (1, promise.result(scope)),
        v8::PromiseState::Rejected => (2, promise.result(scope)),
    };
    let details = [v8::Integer::new(scope, state).into(), result];
    answer.set(v8::Array::new_with_elements(scope, &details).into());
}

pub fn preview_entries<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let Ok(object) = v8::Local::<v8::Object>::try_from(arguments.get(0)) else { return };
    let (Some(entries), is_key_value) = object.preview_entries(scope) else { return };
    if object.is_weak_map() || object.is_weak_set() {
        inputs::gap(Gap::WeakMembers);
    }
    let details = [entries.into(), v8::Boolean::new(scope, is_key_value).into()];
    answer.set(v8::Array::new_with_elements(scope, &details).into());
}

pub fn own_non_index_keys<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let Ok(object) = v8::Local::<v8::Object>::try_from(arguments.get(0)) else { return };
    let filter = if arguments.get(1).is_true() { v8::PropertyFilter::ONLY_ENUMERABLE } else { v8::PropertyFilter::ALL_PROPERTIES };
    let wanted = v8::GetPropertyNamesArgs {
        mode: v8::KeyCollectionMode::OwnOnly,
        property_filter: filter,
        index_filter: v8::IndexFilter::SkipIndices,
        key_conversion: v8::KeyConversionMode::KeepNumbers,
    };
    match object.get_property_names(scope, wanted) {
        Some(keys) => answer.set(keys.into()),
        None if !scope.is_execution_terminating() => throw(scope, "the keys of this object can't be read"),
        None => {}
    }
}

pub fn constructor_name<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let Ok(object) = v8::Local::<v8::Object>::try_from(arguments.get(0)) else { return };
    let _ = &scope;
    answer.set(object.get_constructor_name().into());
}
